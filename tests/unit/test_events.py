"""Listeners get their events in order, and whatever they do is none of the call's business."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timezone
from queue import Queue
from typing import Any

import pytest

from supermemory_livekit import ConfigurationError, Degraded, Stored, SupermemoryLiveKit
from supermemory_livekit.events import MOST_WAITING, Events
from supermemory_livekit.testing import ScriptedStore

OUTAGE = Degraded("search", "ServiceTimeout", datetime(2026, 5, 1, tzinfo=timezone.utc))


def stored(number: int) -> Stored:
    return Stored("lk-room-1", number, 0.5)


async def test_a_coroutine_function_gets_its_events_one_after_another() -> None:
    """Design 6: an event that overtakes another tells a wrong story."""
    events, seen = Events(), list[int]()

    async def listen(event: Stored) -> None:
        for _ in range(5 - event.turns):  # an earlier one takes longer
            await asyncio.sleep(0)
        seen.append(event.turns)

    events.add("stored", listen)
    for number in range(5):
        events.emit("stored", stored(number))
    await events.aclose(5)
    assert seen == [0, 1, 2, 3, 4]


async def test_a_plain_function_runs_beside_the_event_loop_and_in_order() -> None:
    """Issue: a callback that hangs never hurts the call; one that blocks must not block the loop."""
    events, seen = Events(), Queue[tuple[int, bool]]()

    def listen(event: Stored) -> None:
        seen.put((event.turns, threading.current_thread() is threading.main_thread()))

    events.add("stored", listen)
    for number in range(5):
        events.emit("stored", stored(number))
    await events.aclose(5)
    assert [seen.get(timeout=5) for _ in range(5)] == [(number, False) for number in range(5)]


@pytest.mark.parametrize("error", [RuntimeError("secret words"), SystemExit(3)])
async def test_a_listener_that_raises_goes_on_listening_and_is_named_once_by_its_kind(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue: a callback that raises never hurts the call; Case P2: its text may quote the caller."""
    events, seen = Events(), Queue[int]()

    def listen(event: Stored) -> None:
        seen.put(event.turns)
        raise error

    events.add("stored", listen)
    for number in range(3):
        events.emit("stored", stored(number))
    await events.aclose(5)
    assert [seen.get(timeout=5) for _ in range(3)] == [0, 1, 2]
    (record,) = caplog.records
    assert type(error).__name__ in record.getMessage()
    assert "secret" not in caplog.text


async def test_a_coroutine_that_raises_goes_on_listening(caplog: pytest.LogCaptureFixture) -> None:
    """Issue: a callback that raises never hurts the call."""
    events, seen = Events(), list[int]()

    async def listen(event: Stored) -> None:
        seen.append(event.turns)
        raise ValueError("secret words")

    events.add("stored", listen)
    events.emit("stored", stored(1))
    events.emit("stored", stored(2))
    await events.aclose(5)
    assert seen == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        'A listener to "stored" failed with ValueError'
    ]


async def test_one_that_hangs_holds_up_nobody_else_and_costs_bounded_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue: a callback that hangs never hurts the call; nor may what waits for it grow for ever."""
    events, seen, release = Events(), list[int](), threading.Event()

    async def hangs(event: Stored) -> None:
        await asyncio.Event().wait()

    def blocks(event: Stored) -> None:
        release.wait(30)

    async def listens(event: Stored) -> None:
        seen.append(event.turns)

    for listener in (hangs, blocks, listens):
        events.add("stored", listener)
    try:
        for number in range(MOST_WAITING + 10):
            events.emit("stored", stored(number))
            await asyncio.sleep(0)
        await events.aclose(0.01)
    finally:
        release.set()
    assert seen == list(range(MOST_WAITING + 10))
    assert [record.getMessage() for record in caplog.records] == [
        'A listener to "stored" takes no more events: they are dropped'
    ] * 2


async def test_on_is_a_call_or_a_decorator_and_off_ends_it() -> None:
    """Issue: `memory.on(name, callback)`, also as a decorator; `memory.off`."""
    memory = SupermemoryLiveKit.from_store(ScriptedStore(), container_tag="a", session_id="room-1")
    seen = list[tuple[str, Any]]()

    @memory.on("degraded")
    async def degraded(event: Degraded) -> None:
        seen.append(("decorated", event))

    async def given(event: Degraded) -> None:
        seen.append(("given", event))

    assert memory.on("degraded", given) is given
    memory.on("degraded", given)  # again: nothing changes
    memory._events.emit("degraded", OUTAGE)
    await memory._events.aclose(5)
    assert sorted(who for who, _ in seen) == ["decorated", "given"]
    memory.off("degraded", degraded)
    memory.off("degraded", degraded)
    memory._events.emit("degraded", OUTAGE)
    await memory.aclose()
    assert [who for who, _ in seen].count("decorated") == 1
    assert [who for who, _ in seen].count("given") == 2


@pytest.mark.parametrize("name", ["recall", "", "Stored"])
def test_an_event_that_does_not_exist_is_a_mistake_of_the_set_up(name: Any) -> None:
    """Design 6: wrong set-up is raised, and says what there is."""
    events = Events()
    with pytest.raises(ConfigurationError, match='"recalled", "stored", "degraded", "restored"'):
        events.add(name, print)
    with pytest.raises(ConfigurationError, match="takes a callable, not str"):
        events.add("stored", "print")  # type: ignore[arg-type]


async def test_a_listener_may_close_the_memory() -> None:
    """A listener that ends the call must not wait for itself."""
    memory = SupermemoryLiveKit.from_store(ScriptedStore(), container_tag="a", session_id="room-1")
    closed = asyncio.Event()

    @memory.on("degraded")
    async def degraded(event: Degraded) -> None:
        await memory.aclose()
        closed.set()

    memory._events.emit("degraded", OUTAGE)
    await asyncio.wait_for(closed.wait(), 10)
