"""What was said and is not stored can be taken back: all of it, or the turns that had something forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.capturing import ANA, START, Call, sent, stored

from supermemory_livekit.params import InputParams
from supermemory_livekit.testing import Hang, ScriptedStore

pytestmark = pytest.mark.usefixtures("clock")


def on_disk(directory: Path) -> str:
    return "".join(path.read_text("utf-8") for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("spooled", [False, True])
async def test_what_is_discarded_is_neither_written_nor_left_on_disk(spooled: bool, tmp_path: Path) -> None:
    """Issue: discard() empties what is buffered; decision 19: the spool too."""
    store = ScriptedStore()
    call = Call(store, params=InputParams(spool_dir=tmp_path if spooled else None))
    call.say("caller", "before any bind", scope=None)
    call.say("caller", "my secret")
    call.say("agent", "your secret")
    assert ("secret" in on_disk(tmp_path)) is spooled
    assert call.capture.discard() == 3
    assert call.capture.discard() == 0
    assert "secret" not in on_disk(tmp_path)
    assert "before" not in on_disk(tmp_path)
    call.say("caller", "something else")
    await call.capture.aclose(8)
    assert stored(store) == [("caller", "something else")]
    stats = call.stats
    assert (stats.turns_captured, stats.turns_written, stats.turns_unwritten) == (4, 1, 0)
    assert stats.turns_dropped == 3


@pytest.mark.parametrize("spooled", [False, True])
async def test_a_request_under_way_is_given_up_and_not_repeated(spooled: bool, tmp_path: Path) -> None:
    """Decision 19: what it carried may be stored, and is not sent again; what is said later is written."""
    store = ScriptedStore().script("append", Hang())
    call = Call(store, params=InputParams(spool_dir=tmp_path if spooled else None))
    call.exchange(1)
    await asyncio.sleep(1)
    assert call.capture.discard() == 2
    call.exchange(2)
    await asyncio.sleep(1)
    assert sent(store) == [["question 1", "answer 1"], ["question 2", "answer 2"]]
    assert isinstance(store.calls[0].error, asyncio.CancelledError)
    await call.capture.aclose(8)
    assert stored(store) == [("caller", "question 2"), ("agent", "answer 2")]
    assert call.stats.turns_unwritten == 0


@pytest.mark.parametrize("spooled", [False, True])
async def test_single_turns_can_be_withdrawn_as_long_as_nothing_of_them_was_sent(
    spooled: bool, tmp_path: Path
) -> None:
    """Decision 19: a turn that only manages memory."""
    store = ScriptedStore()
    call = Call(store, params=InputParams(spool_dir=tmp_path if spooled else None))
    first = call.capture.record("caller", "one", at=START, scope=ANA)
    second = call.capture.record("caller", "two", at=START, scope=ANA)
    assert first is not None
    assert second is not None
    assert call.capture.withdraw({first}) == 1
    assert call.capture.withdraw({first}) == 0
    call.capture.wake()
    await asyncio.sleep(1)
    assert call.capture.withdraw({second}) == 0
    await call.capture.aclose(8)
    assert stored(store) == [("caller", "two")]
    assert (call.stats.turns_written, call.stats.turns_dropped, call.stats.turns_unwritten) == (1, 1, 0)
