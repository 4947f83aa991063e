"""Texts on their way through the developer's redactor."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from datetime import datetime, timezone
from typing import Any

import pytest

from supermemory_livekit.capture.intake import Intake, Said
from supermemory_livekit.capture.redaction import Redaction
from supermemory_livekit.telemetry import Stats

pytestmark = pytest.mark.usefixtures("clock")


class Call:
    """An intake whose every turn is noted when it is through."""

    def __init__(self, redactor: Any) -> None:
        self.stats = Stats()
        self.redaction = Redaction(redactor, self.stats)
        self.kept: list[str] = []
        self.through: list[str] = []
        self.intake = Intake(
            self.redaction,
            self.stats,
            deliver=lambda said: self.kept.append(said.text),
            passed=lambda said: self.through.append(said.role),
        )

    def say(self, text: str) -> Said:
        said = Said("caller", text, datetime(2026, 1, 1, tzinfo=timezone.utc), None)
        self.intake.take(said)
        return said


async def test_turns_keep_their_order_however_long_each_takes() -> None:
    """Decision 19: async redactors are as fast as they are."""

    async def redact(text: str) -> str:
        await asyncio.sleep({"a": 3, "b": 0, "c": 1}[text])
        return text.upper()

    call = Call(redact)
    for text in "abc":
        call.say(text)
    await call.intake.settled(10)
    assert call.kept == ["A", "B", "C"]


async def test_without_a_redactor_a_turn_is_in_the_buffer_at_once() -> None:
    """Design 5: a process that is killed loses as little as it can."""
    call = Call(None)
    call.say("a")
    assert call.kept == ["a"]


@pytest.mark.parametrize("answer", [None, "", "  "])
async def test_what_the_redactor_drops_goes_nowhere_and_is_counted(answer: str | None) -> None:
    """Issue: redact may change or drop a turn."""
    call = Call(lambda text: answer if text == "secret" else text)
    call.say("one")
    call.say("secret")
    call.say("two")
    await call.intake.settled(10)
    assert call.kept == ["one", "two"]
    assert len(call.through) == 3
    assert (call.stats.turns_withheld, call.stats.redactions_failed) == (1, 0)


def fails(text: str) -> str:
    raise ValueError(f"cannot read {text}")


async def hangs(text: str) -> str:
    await asyncio.Event().wait()
    return text


@pytest.mark.parametrize("redactor", [fails, hangs, lambda text: 7])  # pyright: ignore[reportUnknownLambdaType]
async def test_a_text_on_which_the_redactor_fails_is_never_used_as_it_was(
    redactor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Decision 19, case P2: dropped, counted, said once without the caller's words."""
    call = Call(redactor)
    call.say("my secret")
    call.say("another secret")
    await call.intake.settled(60)
    assert call.kept == []
    assert (call.stats.turns_withheld, call.stats.redactions_failed) == (2, 2)
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(messages) == 1
    assert "redact fails" in messages[0]
    assert "secret" not in messages[0]


async def test_a_sync_redactor_does_not_hold_up_the_event_loop() -> None:
    """Decision 19: the call's audio runs on it."""
    threads: list[int] = []

    def redact(text: str) -> str:
        threads.append(threading.get_ident())
        return text

    assert await Redaction(redact, Stats()).redacted("a") == "a"
    assert threads != [threading.get_ident()]


@pytest.mark.parametrize(
    ("error", "is_async"),
    [
        *itertools.product(
            [StopIteration, GeneratorExit, RecursionError, SystemExit, asyncio.CancelledError], [False, True]
        ),
        # Raised on the loop it is Ctrl-C, and passes.
        (KeyboardInterrupt, False),
    ],
)
async def test_whatever_a_redactor_raises_costs_its_text_alone(
    error: type[BaseException], is_async: bool
) -> None:
    """Decision 19: it is foreign code; none of it reaches the call."""

    def redact(text: str) -> str:
        if text == "bad":
            raise error
        return text

    async def redact_later(text: str) -> str:
        return redact(text)

    stats = Stats()
    redaction = Redaction(redact_later if is_async else redact, stats)
    assert await redaction.redacted("bad") is None
    assert stats.redactions_failed == 1
    assert await redaction.redacted("good") == "good"


async def test_a_sync_redactor_that_hangs_takes_no_thread_from_others() -> None:
    """Decision 19: an erasure needs threads too, and a process ends."""
    release = threading.Event()
    hanging: list[threading.Thread] = []

    def redact(text: str) -> str:
        hanging.append(threading.current_thread())
        release.wait()
        return text

    stats = Stats()
    redaction = Redaction(redact, stats, limit=0.05)
    try:
        answers = await asyncio.gather(*(redaction.redacted(f"text {number}") for number in range(20)))
        assert await asyncio.to_thread(len, "free") == 4
    finally:
        release.set()
    assert set(answers) == {None}
    assert stats.redactions_failed == 20
    assert len(hanging) == 4
    assert all(thread.daemon for thread in hanging)


async def test_an_object_with_an_async_call_is_a_redactor() -> None:
    """Issue: sync or async."""

    class Redactor:
        async def __call__(self, text: str) -> str:
            return text.upper()

    assert await Redaction(Redactor(), Stats()).redacted("a") == "A"


async def test_a_turn_that_is_looked_up_and_stored_is_redacted_once() -> None:
    """Decision 19: what it costs is paid once per turn, also when the first to ask gives up."""
    asked: list[str] = []

    async def redact(text: str) -> str:
        asked.append(text)
        await asyncio.sleep(1)
        return text.upper()

    redaction = Redaction(redact, Stats())
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(redaction.redacted("a"), 0.5)
    assert await redaction.redacted("a") == "A"
    assert await redaction.redacted("a") == "A"
    assert asked == ["a"]


async def test_a_turn_that_is_withdrawn_while_it_is_redacted_goes_nowhere() -> None:
    """Decision 19: discard() empties what is buffered, wherever it is."""

    async def redact(text: str) -> str:
        await asyncio.sleep(1)
        return text

    call = Call(redact)
    call.say("a")
    call.say("b")
    await asyncio.sleep(0.5)
    assert call.intake.discard() == 2
    call.say("c")
    await call.intake.settled(10)
    assert call.kept == ["c"]
    assert call.stats.turns_withheld == 2


async def test_the_end_of_the_call_gives_up_what_still_waits() -> None:
    """Design 5.6: the end is bounded; what is lost is counted."""
    call = Call(hangs)
    call.say("a")
    await call.intake.settled(1)
    await call.intake.aclose()
    await call.intake.aclose()
    assert (call.kept, call.stats.turns_withheld) == ([], 1)


async def test_a_redactor_that_does_not_let_itself_be_cancelled_holds_up_nothing() -> None:
    """Decision 19: a text is given up after its time, whatever the redactor does."""
    release = asyncio.Event()

    async def redact(text: str) -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return text

    stats = Stats()
    redaction = Redaction(redact, stats)
    began = asyncio.get_running_loop().time()
    assert await redaction.redacted("a") is None
    assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)
    assert stats.redactions_failed == 1
    release.set()
    await redaction.aclose()
