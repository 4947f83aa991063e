"""Headless Chromium with Debian's own driver, and why there may be none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

__all__ = ["chromium", "why_not"]

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    # Nothing but this machine can be reached, whatever a page or the browser itself may want.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--lang=en-GB",
)


def why_not() -> str | None:
    """The reason why no browser can be started, or None."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)} (Debian: chromium, chromium-driver)" if missing else None


@contextmanager
def chromium(*, dark: bool = False, width: int = 1280, height: int = 900) -> Generator[webdriver.Chrome]:
    """A browser with a profile of its own, which is gone afterwards. Its console is kept for `get_log("browser")`."""
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
        try:
            features = [
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
            yield driver
        finally:
            driver.quit()
