"""The documentation says what is so: its code runs, its tables are the code's, its links lead somewhere."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import llm

import supermemory_livekit
from supermemory_livekit import InputParams, SupermemoryLiveKit
from supermemory_livekit.store import Profile
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore
from tests.docs.update_readme import README, REPOSITORY, snippets, updated
from tests.support.sessions import say, started

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])


def page_name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def readme() -> str:
    return README.read_text("utf-8")


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", readme(), re.DOTALL | re.MULTILINE)


def table_rows(text: str) -> list[list[str]]:
    """The cells of the rows of a Markdown table, without its head."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


# -- code


def test_the_quick_start_of_the_readme_is_the_example_that_tests_run() -> None:
    """Specification: the quick start; kept equal to the file by `python tests/docs/update_readme.py`."""
    assert "examples/quickstart.py" in snippets(readme())
    assert readme() == updated(readme()), "run `python tests/docs/update_readme.py`"


def test_the_code_of_the_readme_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Style 11: documentation is executed. A later block may use what an earlier one imported."""
    monkeypatch.setenv("SUPERMEMORY_API_KEY", "unused")
    namespace = run_readme()
    memory = namespace["memory"]
    assert isinstance(memory, SupermemoryLiveKit)
    assert memory.container_tag == "user_123"


def run_readme() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "readme"}
    blocks = python_blocks()
    assert len(blocks) >= 4
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"README.md, block {number}", "exec"), namespace)
    return namespace


async def test_the_agent_that_the_readme_shows_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification, "Your own agent": pass the tools in, and recall from llm_node."""
    monkeypatch.setenv("SUPERMEMORY_API_KEY", "unused")
    store = ScriptedStore()
    store.profiles["user_1"] = Profile(static=("Is called Ana.",))
    memory = SupermemoryLiveKit.from_store(store, container_tag="user_1", session_id="room-1")
    model = ScriptedLLM()
    async with started(run_readme()["Assistant"](memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Who am I?")
    await memory.aclose()
    assert "Is called Ana." in model.last.text
    assert set(tool_names(memory)) <= set(model.last.tools)


# -- tables


def test_the_table_of_parameters_is_the_one_of_the_code() -> None:
    """Case P6: defaults in code, README and docs are equal."""
    table = re.search(r"<!-- params table.*?-->\n(.*?)<!-- end params table -->", readme(), re.DOTALL)
    assert table is not None
    shown = [(name, default) for name, default, _ in table_rows(table[1])]
    assert shown == [
        (f"`{name}`", f"`{python(field.default)}`") for name, field in InputParams.model_fields.items()
    ]


def python(value: object) -> str:
    """As the code of this package writes it: with double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def test_the_values_and_bounds_in_the_table_of_parameters_are_those_of_the_code() -> None:
    """Case P6; a choice that is not named, or a bound that is not the code's, misleads."""
    table = re.search(r"<!-- params table.*?-->\n(.*?)<!-- end params table -->", readme(), re.DOTALL)
    assert table is not None
    described = {name.strip("`"): text for name, _, text in table_rows(table[1])}
    for name, schema in InputParams.model_json_schema()["properties"].items():
        for choice in schema.get("enum", []):
            assert f"`{choice}`" in described[name]
        if "minimum" in schema:
            assert f"{schema['minimum']} to {schema['maximum']}" in described[name]


def test_the_tools_in_the_readme_are_the_tools_of_the_model() -> None:
    """Specification, "Tools": search_memories, remember, forget."""
    section = re.search(r"^## Tools\n(.*?)^## ", readme(), re.DOTALL | re.MULTILINE)
    assert section is not None
    memory = SupermemoryLiveKit.from_store(ScriptedStore())
    assert [name.strip("`") for name, _ in table_rows(section[1])] == tool_names(memory)


def tool_names(memory: SupermemoryLiveKit) -> list[str]:
    return [tool.info.name for tool in memory.tools() if isinstance(tool, llm.FunctionTool)]


# -- names


@pytest.mark.parametrize("module", ["supermemory_livekit", "supermemory_livekit.testing"])
def test_public_names_are_sorted_and_importable(module: str) -> None:
    """Style 1: public names only through a sorted `__all__`."""
    package = importlib.import_module(module)
    assert package.__all__ == sorted(set(package.__all__))
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_the_names_of_the_specification_are_public() -> None:
    """Design 1: the public names."""
    names = {"ConfigurationError", "InputParams", "SupermemoryAgent", "SupermemoryLiveKit"}
    assert names <= set(supermemory_livekit.__all__)


def test_every_method_that_the_readme_calls_exists() -> None:
    """Style 11: a name in the text that is no longer in the code sends a reader astray."""
    methods = set(re.findall(r"`(?:await )?(?:self\.)?memory\.(\w+)", readme()))
    assert methods >= {"attach", "stats"}
    assert [name for name in sorted(methods) if not hasattr(SupermemoryLiveKit, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_setting_that_a_page_names_is_read_by_the_code(page: Path) -> None:
    """Style 11: a variable that nothing reads is a promise that nothing keeps."""
    code = "\n".join(path.read_text("utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    named = set(re.findall(r"\b(?:SUPERMEMORY|OPENAI)_[A-Z_]+\b", page.read_text("utf-8")))
    # The key of OpenAI's client is read by that client.
    assert [name for name in sorted(named - {"OPENAI_API_KEY"}) if name not in code] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    """Style 11: the first command of the README is one of them."""
    text = page.read_text("utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", text, re.MULTILINE))
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert sorted(named - targets) == []


# -- links


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    """Style 11: checked like code."""
    broken = [link for link in links(page) if not leads_somewhere(page, link)]
    assert broken == []


def test_every_example_is_named_in_the_readme() -> None:
    """Design 3: an example that nobody finds helps nobody."""
    missing = [path.name for path in (REPOSITORY / "examples").glob("*.py") if path.name not in readme()]
    assert missing == []


def test_the_readme_has_few_links_to_files_and_names_them_where_they_lead_nowhere() -> None:
    """A package index shows the README where no file of ours is. A link's text is then all there is."""
    files = re.findall(r"\[([^\]]*)\]\(([^)#:]+)\)", readme())
    assert len(files) <= 8
    assert "](docs/images" not in readme()
    assert [text for text, _ in files if not re.search(r"\w/|\.md|tutorial", text)] == []


def test_every_file_that_the_readme_names_exists() -> None:
    """A name in the text is checked like a link."""
    named = re.findall(r"`((?:docs|examples)/[\w./-]*|[A-Z]+\.md)`", readme())
    assert len(named) >= 5
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


# -- commands


@pytest.mark.parametrize(
    ("page", "agent"),
    [(README, "quickstart.py"), (REPOSITORY / "docs" / "tutorial" / "README.md", "agent.py")],
)
def test_the_command_that_starts_an_agent_is_no_deprecated_one(page: Path, agent: str) -> None:
    """A stranger's remark: `python quickstart.py dev` is answered with a notice that it goes away."""
    found = re.findall(rf"^python (.* {agent})$", page.read_text("utf-8"), re.MULTILINE)
    assert found == [f"-m livekit.agents start --dev {agent}"]
    (folder,) = {path.parent for path in REPOSITORY.glob(f"[de]*/**/{agent}")}
    nowhere = {"LIVEKIT_URL": "ws://127.0.0.1:9", "LIVEKIT_API_KEY": "k", "LIVEKIT_API_SECRET": "s" * 32}
    worker = subprocess.Popen(
        [sys.executable, *found[0].split()],
        cwd=folder,
        env={**os.environ, **nowhere},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert worker.stdout is not None
    printed = ""
    try:
        while "failed to connect" not in printed:
            line = worker.stdout.readline()
            assert line, f"the worker ended:\n{printed}"
            printed += line
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
    assert "starting worker" in printed
    assert "deprecated" not in printed.lower()


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(REPOSITORY):
        return False
    return not anchor or anchor in anchors(target)


def anchors(page: Path) -> Iterator[str]:
    """The anchors that GitHub gives the headings of a page."""
    for heading in re.findall(r"^#+ +(.+)$", page.read_text("utf-8"), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
