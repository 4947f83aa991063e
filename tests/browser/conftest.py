"""One server with callers, and one browser, for all tests here; each test begins with a tab that knows no key."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from .pages import Inspector
    from .served import Served

if importlib.util.find_spec("selenium") is None:
    # The tests in this folder need it to be imported at all.
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    from .served import fill, served

    path = tmp_path_factory.mktemp("inspector") / "memory.db"
    asyncio.run(fill(path))
    with served(path) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Generator[Chrome]:
    from .chromium import chromium, why_not

    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with chromium() as driver:
        yield driver


@pytest.fixture
def locked(server: Served, browser: Chrome) -> Iterator[Inspector]:
    """A tab in which no key was entered."""
    from .pages import Inspector

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
