"""The verdict of the demo says yes only when everything held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from supermemory_livekit.cli.demo.report import Report
from supermemory_livekit.cli.demo.run import verdict
from supermemory_livekit.cli.demo.script import Script

SCRIPT = Script.draw(7)


def good() -> Report:
    answers = [
        f"Yes, {question.expected}." if question.expected else "No." for question in SCRIPT.second_call()
    ]
    return Report(
        greeting=f"Hello {SCRIPT.name}",
        answers=answers,
        recalled=[[] for _ in answers],
        other=["I do not know."],
    )


def holds(report: Report) -> bool:
    return all(held for held, _ in verdict(SCRIPT, report))


def test_right_answers_hold() -> None:
    """The demo's success is what the agent says, compared with what the caller said."""
    assert holds(good())


@pytest.mark.parametrize("position", range(4))
def test_one_wrong_answer_does_not_hold(position: int) -> None:
    """Each question counts."""
    report = good()
    report.answers[position] = "I am sorry, I do not know that."
    assert not holds(report)


def test_a_corrected_fact_beside_the_old_one_does_not_hold() -> None:
    """The old value must not be said any more."""
    report = good()
    report.answers[3] += f" Or {SCRIPT.wrong_dog}?"
    assert not holds(report)


def test_a_forgotten_fact_that_is_recalled_does_not_hold() -> None:
    """Forgotten means that the model is not shown it, not only that it keeps quiet."""
    report = good()
    report.recalled[4] = [f"My loyalty card number is {SCRIPT.card}."]
    assert not holds(report)


def test_a_greeting_without_the_name_and_a_word_to_another_caller_do_not_hold() -> None:
    """The verdict covers isolation: memory is isolated by container tag."""
    assert not holds(replace(good(), greeting="Hello."))
    assert not holds(replace(good(), other=[f"You live in {SCRIPT.city}."]))


def test_a_report_survives_the_way_between_processes(tmp_path: Path) -> None:
    """The second call runs in another process than the verdict."""
    good().write(tmp_path / "report.json")
    assert Report.read(tmp_path / "report.json") == good()
