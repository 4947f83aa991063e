"""One server with callers, and one browser, for all tests here; each test begins with a tab that knows no key."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

import pytest
from selenium.webdriver import Chrome

from .chromium import chromium, why_not
from .pages import Inspector
from .served import Served, fill, served


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    path = tmp_path_factory.mktemp("inspector") / "memory.db"
    asyncio.run(fill(path))
    with served(path) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Generator[Chrome]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with chromium() as driver:
        yield driver


@pytest.fixture
def locked(browser: Chrome, server: Served) -> Iterator[Inspector]:
    """A tab in which no key was entered."""
    browser.get(server.url + "/inspector/icon.svg")
    browser.execute_script("sessionStorage.clear()")
    page = Inspector(browser, server.url)
    page.console()
    yield page
    browser.get("about:blank")


@pytest.fixture
def page(locked: Inspector) -> Inspector:
    """A tab with the list of callers."""
    locked.unlock()
    return locked
