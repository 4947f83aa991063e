"""The inspector in a real browser, headless Chromium, against the real server in a process of its own."""
