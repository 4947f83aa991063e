"""`demo --chat`, typed through a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from .chat_model import ChatModelDouble, served
from .support import run

pytestmark = pytest.mark.timeout(200)


def test_who_chats_again_is_remembered_and_another_caller_is_not(tmp_path: Path) -> None:
    """Design 1: the call is stored on the local default path under the name that was given."""
    first = run("demo", "--chat", "--caller", "ana", home=tmp_path, stdin="My cat is called Miso.\nbye\n")
    assert first.returncode == 0, first.stderr
    assert "a stand-in" in first.stdout, "it says which model answers"
    assert "Stored: 5 turns of this call." in first.stdout
    assert (tmp_path / "supermemory-livekit" / "memory.db").exists()

    second = run("demo", "--chat", "--caller", "ana", home=tmp_path, stdin="What is my cat called?\n")
    assert second.returncode == 0, "the end of input ends the call"
    assert "Agent:  Your cat is called Miso." in second.stdout

    other = run("demo", "--chat", "--caller", "ben", home=tmp_path, stdin="What is my cat called?\n")
    assert "Miso" not in other.stdout


def test_a_configured_model_answers_with_what_was_recalled(tmp_path: Path) -> None:
    """Design 1: with OPENAI_MODEL and OPENAI_BASE_URL the model speaks, and it is shown the memory."""
    run("demo", "--chat", home=tmp_path, stdin="My cat is called Miso.\nbye\n")
    double = ChatModelDouble("Hello!", ("remember", {"memory": "Has a cat"}), "Your cat is Miso.", "Goodbye!")
    with served(double):
        result = run(
            "demo",
            "--chat",
            home=tmp_path,
            stdin="What is my cat called?\nbye\n",
            OPENAI_MODEL="double",
            OPENAI_BASE_URL=double.url,
        )
    assert result.returncode == 0, result.stderr
    assert "Language model: double at 127.0.0.1." in result.stdout
    assert "Agent:  Your cat is Miso." in result.stdout
    assert "tool remember" in result.stdout
    assert any("Miso" in str(message["content"]) for message in double.requests[1]["messages"])


def test_a_model_that_fails_ends_the_call_with_one_line(tmp_path: Path) -> None:
    """What a person typed is stored all the same, and no stack trace is shown."""
    double = ChatModelDouble(status=401)
    with served(double):
        result = run(
            "demo",
            "--chat",
            home=tmp_path,
            stdin="Hello\n",
            OPENAI_MODEL="double",
            OPENAI_BASE_URL=double.url,
        )
    assert result.returncode == 1
    assert "the language model fails" in result.stdout
    assert "Traceback" not in result.stderr


def test_a_caller_without_a_name_is_refused_in_one_line(tmp_path: Path) -> None:
    """Case S1: an empty tag is refused at bind."""
    result = run("demo", "--chat", "--caller", " ", home=tmp_path)
    assert result.returncode == 2
    assert "Cannot start" in result.stdout
    assert "Traceback" not in result.stderr


def test_a_database_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    """A person at a shell needs the reason and what to change, not a stack trace."""
    (tmp_path / "file").write_text("no directory")
    ended = run("demo", "--chat", "--path", str(tmp_path / "file" / "memory.db"), home=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("Cannot start: The memory file cannot be opened")
    assert ended.stderr.endswith("Name another file with --path.\n")
    assert len(ended.stderr.splitlines()) == 1


def test_a_blank_caller_is_told_by_the_name_of_the_option(tmp_path: Path) -> None:
    """Not by that of the parameter behind it."""
    ended = run("demo", "--chat", "--caller", " ", home=tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == "Cannot start: --caller takes a name or a number.\n"
