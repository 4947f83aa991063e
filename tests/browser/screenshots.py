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
            for dark in (False, True):
                take(server, IMAGES, "dark" if dark else "light", dark=dark)


def ask(server: Served) -> None:
    for question in ("where do you live now", "what tyres did I order", "is my daughter's bike there"):
        answer = server.http.post(
            "/v4/search", json={"containerTag": INES, "q": question, "searchMode": "hybrid", "threshold": 0.1}
        )
        answer.raise_for_status()


def take(server: Served, images: Path, scheme: str, *, dark: bool) -> None:
    with chromium(dark=dark, height=1000) as driver:
        page = Inspector(driver, server.url)
        page.unlock()
        driver.save_screenshot(str(images / f"inspector-callers-{scheme}.png"))
        views = {
            "profile": ((), "rider_ines"),
            "memories": (("memories",), "rider_ines"),
            "calls": (("calls",), "rider_ines"),
        }
        for name, (segments, title) in views.items():
            page.go("caller", INES, *segments)
            page.heading(title)
            page.until(
                f"//nav[@aria-label='This caller']//a[@aria-current and normalize-space()='{name.capitalize()}']"
            )
            driver.save_screenshot(str(images / f"inspector-{name}-{scheme}.png"))
        page.link("lk-shop-102").click()
        page.heading("Call")
        driver.save_screenshot(str(images / f"inspector-call-{scheme}.png"))
        page.go("caller", INES, "memories")
        page.until_text("Aveiro").click()
        page.heading("Memory")
        driver.save_screenshot(str(images / f"inspector-memory-{scheme}.png"))
        page.go("caller", INES, "search", query="?q=where%20do%20I%20live")
        page.until_text("Recalled:")
        driver.save_screenshot(str(images / f"inspector-search-{scheme}.png"))
        page.go("recalls")
        page.heading("Live recalls")
        for summary in driver.find_elements("xpath", "//summary"):
            summary.click()
        driver.save_screenshot(str(images / f"inspector-recalls-{scheme}.png"))


if __name__ == "__main__":
    main()
