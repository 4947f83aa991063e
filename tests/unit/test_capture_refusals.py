"""Texts that the service refuses as such: a bad line blocks nothing that comes after, and is not lost silently."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from pathlib import Path

import pytest
from tests.unit.capturing import ANA, Call, stored

from supermemory_livekit.capture.writer import MOST_SUSPECTS
from supermemory_livekit.errors import RequestRejected, ServiceUnavailable
from supermemory_livekit.params import InputParams
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.spool.recovery import recover
from supermemory_livekit.store import Dreaming
from supermemory_livekit.testing import Fail, ScriptedStore

pytestmark = pytest.mark.usefixtures("clock")


class Squeamish(ScriptedStore):
    """Refuses every text with this word in it."""

    def __init__(self, word: str = "poison", status: int = 400) -> None:
        super().__init__()
        self.word, self.status = word, status

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        if self.word and self.word in text:
            await asyncio.sleep(0.05)
            self.script("append", Fail(RequestRejected(f"answered {self.status}", status=self.status)))
        return await super().append(tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout)


def kept(call: Call) -> list[tuple[str, str]]:
    return [turn for turn in call.said[ANA] if "poison" not in turn[1]]


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("bad", [{0}, {7}, {39}, {3, 4}, {5, 20, 21, 39}], ids=str)
async def test_a_line_that_is_refused_does_not_block_the_others(
    bad: set[int], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """0005: it is found among the others, dropped and counted; the others are stored once and in order."""
    store = Squeamish(status=status)
    call = Call(store)
    for number in range(40):
        call.say("caller", f"poison {number}" if number in bad else f"words {number}")
    call.capture.wake()
    await asyncio.sleep(30)
    call.say("caller", "the end")
    call.capture.wake()
    await asyncio.sleep(600)
    assert stored(store) == kept(call)
    assert (call.stats.turns_dropped, call.stats.turns_unwritten) == (len(bad), 0)
    assert call.stats.turns_captured == call.stats.turns_written + call.stats.turns_dropped
    assert len(store.called("append")) < 90
    assert [record.levelname for record in caplog.records].count("ERROR") == 1
    assert "poison" not in caplog.text


async def test_a_flush_finds_the_line_that_is_refused() -> None:
    """0005: at the end of a call too, within its time."""
    store = Squeamish()
    call = Call(store)
    for number in range(100):
        call.say("caller", "poison" if number == 60 else f"words {number}")
    assert await call.capture.flush(6.5) == 0
    assert stored(store) == kept(call)


async def test_while_everything_is_refused_nothing_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """0005: then the fault is not in a line; all is kept, in order, and stored when the service takes texts again."""
    caplog.set_level(logging.ERROR)
    store = Squeamish(word=":")
    call = Call(store)
    for number in range(3 * MOST_SUSPECTS):
        call.exchange(number)
    await asyncio.sleep(600)
    assert (call.stats.turns_dropped, call.stats.turns_unwritten) == (0, 6 * MOST_SUSPECTS)
    assert not caplog.records
    attempts = len(store.called("append"))
    assert attempts < 300
    store.word = ""
    await asyncio.sleep(600)
    assert stored(store) == call.said[ANA]


async def test_a_fault_among_refusals_changes_nothing() -> None:
    """0005: a line steps aside only while the next one is tried, whatever comes between."""
    store = Squeamish()
    call = Call(store)
    for number in range(9):
        call.say("caller", "poison" if number == 4 else f"words {number}")
    call.capture.wake()
    await asyncio.sleep(8.0)
    store.always("append", Fail(ServiceUnavailable("append lost its connection", uncertain=True)))
    await asyncio.sleep(30)
    store.always("append", None)
    await asyncio.sleep(600)
    assert stored(store) == kept(call)
    assert call.stats.turns_dropped == 1


async def test_a_refused_line_stays_in_the_spool_and_blocks_no_later_call(tmp_path: Path) -> None:
    """0008: its words are there for a week; nobody tries them again, and the next call is stored."""
    store = Squeamish()
    first = Call(store, params=InputParams(spool_dir=tmp_path))
    first.say("caller", "poison")
    assert await first.capture.flush(6.5) == 1
    await first.capture.aclose(0)
    second = Call(store, params=InputParams(spool_dir=tmp_path))
    second.say("caller", "hello again")
    second.capture.wake()
    await asyncio.sleep(60)
    await second.capture.aclose(8)
    assert stored(store) == [("caller", "hello again")]
    attempts = len(store.called("append"))
    result = await recover(store, tmp_path)
    assert (result.delivered, result.left, result.refused) == (0, 0, 1)
    assert len(store.called("append")) == attempts
    (path,) = SpoolDirectory(tmp_path).files()
    assert b"poison" in path.read_bytes()
