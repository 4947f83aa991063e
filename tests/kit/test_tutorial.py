"""The tutorial says what is so: its code is in files, and the files do what it says, also without our sources."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from supermemory_livekit.testing import ScriptedLLM
from tests.docs.update_readme import PAGES, REPOSITORY, snippets, updated
from tests.examples.calls import on_the_line, text_session

TUTORIAL = REPOSITORY / "docs" / "tutorial"
PAGE = TUTORIAL / "README.md"
FILES = sorted(path for path in TUTORIAL.iterdir() if path.suffix in (".py", ".ini"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_a_page_shows_of_a_file_is_what_the_file_holds(page: Path) -> None:
    """Style 11: documentation is executed."""
    text = page.read_text("utf-8")
    assert text == updated(text), "run `python tests/docs/update_readme.py`"


def test_the_tutorial_shows_every_file_it_needs_and_no_other_code() -> None:
    """Kit: a tutorial whose code is run by our tests."""
    text = PAGE.read_text("utf-8")
    assert sorted(REPOSITORY / path for path in snippets(text)) == FILES
    blocks = re.findall(r"^```(?:python|ini)$", text, re.MULTILINE)
    assert len(blocks) == len(FILES)


@pytest.mark.timeout(180)
def test_the_tests_of_the_tutorial_pass_and_are_quiet(tmp_path: Path) -> None:
    """Kit: a stranger tests their agent from the tutorial alone; with every warning an error."""
    pytest.importorskip("starlette", reason="the extra [local] is not installed")
    for path in FILES:
        shutil.copy(path, tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^8 passed in", done.stdout, re.MULTILINE), done.stdout
    assert done.stderr == ""


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The agent of the tutorial, imported as its own tests import it."""
    monkeypatch.syspath_prepend(str(TUTORIAL))
    for name in ("agent", "watch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("agent")
    yield module
    for name in ("agent", "watch"):
        sys.modules.pop(name, None)


async def test_the_entrypoint_of_the_tutorial_answers_a_call_and_reports_it(
    agent: ModuleType, supermemory_local: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kit: what the tutorial tests is what its worker runs. In real time: the service works in threads of its own."""
    caplog.set_level("INFO")
    model = ScriptedLLM("Gladly.")
    async with on_the_line(agent, lambda: text_session(model)) as line:
        assert await line.says("A table for two, please.") == "Gladly."
    (report,) = [record for record in caplog.records if record.name == "restaurant"]
    assert vars(report)["turns_written"] == 2
    assert report.levelname == "INFO"
