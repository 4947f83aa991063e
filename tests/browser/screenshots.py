"""Takes the pictures of the documentation anew: `python -m tests.browser.screenshots` from the repository's root."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from .chromium import chromium
from .pages import Inspector
from .served import INES, Served, fill, served

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"
        asyncio.run(fill(path))
        with served(path) as server:
            ask(server)
            take(server, "memory", dark=False)
            take(server, "search", dark=False)
            take(server, "call", dark=True)
            take(server, "recalls", dark=True)


def ask(server: Served) -> None:
    """What a caller could say, once the server has loaded its model."""
    for _ in range(60):
        found = server.post("/inspector/api/search", {"tag": INES, "q": "bicycle"}).json()
        if any("meaning" in hit["parts"] for hit in (*found["recalled"], *found["missed"])):
            break
    for question in ("where do you live now", "what tyres did I order", "is my daughter's bike there"):
        answer = server.http.post(
            "/v4/search", json={"containerTag": INES, "q": question, "searchMode": "hybrid", "threshold": 0.1}
        )
        answer.raise_for_status()


def take(server: Served, view: str, *, dark: bool) -> None:
    with chromium(dark=dark, width=1120, height=980) as driver:
        page = Inspector(driver, server.url)
        page.unlock()
        if view == "memory":
            page.go("caller", INES, "memories")
            page.link("I moved, I live in Aveiro now.").click()
            page.heading("Memory")
        elif view == "search":
            page.go("caller", INES, "search", query="?q=where%20do%20I%20live")
            page.until("//ol[@class='hits']")
        elif view == "call":
            page.go("caller", INES, "calls", "lk-shop-102")
            page.heading("Call")
        else:
            page.go("recalls")
            page.until("//summary").click()
        driver.save_screenshot(str(IMAGES / f"inspector-{view}.png"))


if __name__ == "__main__":
    main()
