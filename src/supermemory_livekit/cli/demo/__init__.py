"""The demo: a caller rings twice and is remembered, on this machine, with no key and no network."""
