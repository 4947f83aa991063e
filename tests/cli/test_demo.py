"""The demo as a stranger runs it: through a pipe, with no key."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from supermemory_livekit.cli.demo.script import Script

from .support import run

pytestmark = pytest.mark.timeout(200)

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """One run with a caller that was drawn for this test run."""
    return run("demo", home=tmp_path_factory.mktemp("demo"))


def seed_of(result: Result) -> int:
    found = re.search(r"Seed (\d+)", result.stdout)
    assert found, result.stdout
    return int(found[1])


def test_a_caller_rings_twice_and_is_recognised(demo: Result) -> None:
    """Specification: a caller who rings back is recalled from the last call. Design 1: with no key."""
    assert demo.stdout.splitlines()[-1] == "demo: caller recognised on the second call: yes", demo.stdout
    assert demo.returncode == 0
    assert demo.stderr == ""


def test_the_second_call_runs_in_a_process_of_its_own(demo: Result) -> None:
    """Specification: memory across sessions. Nothing may travel in the memory of one process."""
    processes = re.findall(r"call \(process (\d+)", demo.stdout)
    assert len(processes) == len(set(processes)) == 2


def test_what_the_caller_said_is_answered_in_the_second_call_and_not_given_to_another(demo: Result) -> None:
    """Specification: memory is isolated by container tag; captured speech is recalled, not only saved facts."""
    script = Script.draw(seed_of(demo))
    second, _, rest = demo.stdout.partition("Second call")[2].partition("Somebody else rings")
    other = rest.partition("What had to hold")[0]
    agent = "\n".join(line for line in second.splitlines() if line.startswith("  Agent:"))
    for fact in (script.name, script.city, script.food, script.instrument, script.dog):
        assert fact in agent
    assert script.wrong_dog not in agent
    assert script.card not in second, "what was forgotten is not even recalled"
    assert not any(secret in other for secret in script.secrets())


def test_a_pipe_gets_plain_lines(demo: Result) -> None:
    """Design 1: the demo's output is read by people and by programs. No escape codes, no padding, no boxes."""
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", demo.stdout) is None
    assert all(line == line.rstrip() for line in demo.stdout.splitlines())


def test_another_caller_is_recognised_too(demo: Result, tmp_path: Path) -> None:
    """Nothing in the demo may be written down beforehand: another seed is another caller."""
    seed = seed_of(demo) + 1
    result = run("demo", "--seed", str(seed), home=tmp_path)
    assert result.returncode == 0, result.stdout
    assert f"Seed {seed}:" in result.stdout
    assert result.stdout != demo.stdout


def test_without_recall_the_caller_is_not_recognised(tmp_path: Path) -> None:
    """The demo proves something only if it fails without the thing it shows."""
    result = run("demo", "--without-recall", home=tmp_path)
    assert result.stdout.splitlines()[-1] == "demo: caller recognised on the second call: no"
    assert result.returncode == 1


def test_a_demo_that_breaks_says_no(tmp_path: Path) -> None:
    """An error is no success either: the last line and the exit code say so."""
    no_database = tmp_path / "no.db"
    no_database.write_text("this is no database" * 100)
    result = run("demo", "--path", str(no_database), home=tmp_path)
    assert result.stdout.splitlines()[-1] == "demo: caller recognised on the second call: no"
    assert result.stdout.startswith("Cannot start: The memory file")
    assert "Name another file with --path.\n" in result.stdout
    assert (result.returncode, result.stderr) == (1, "")
