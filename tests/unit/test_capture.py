from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise

import pytest
from tests.support.clock import VirtualClock
from tests.unit.capturing import ANA, BEN, START, Call, sent, stored

from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.errors import ServiceError, ServiceTimeout, ServiceUnavailable
from supermemory_livekit.params import InputParams
from supermemory_livekit.recall.render import render_block, strip_fenced
from supermemory_livekit.store import Profile
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.testing import Fail, Hang, ScriptedStore, Work

pytestmark = pytest.mark.usefixtures("clock")


async def idle() -> None:
    """Let background writes that need no waiting come to their end."""
    await asyncio.sleep(0.01)


async def test_each_exchange_is_one_write_with_only_its_new_turns() -> None:
    """Case C9."""
    store = ScriptedStore()
    call = Call(store)
    for number in range(3):
        call.exchange(number)
        await idle()
    assert sent(store) == [[f"question {n}", f"answer {n}"] for n in range(3)]
    assert {(c.tag, c.arguments["custom_id"]) for c in store.calls} == {(ANA.container_tag, ANA.document_id)}
    assert {c.arguments["dreaming"] for c in store.calls} == {"instant"}
    assert stored(store) == call.said[ANA]
    assert (call.stats.turns_captured, call.stats.turns_written, call.stats.turns_unwritten) == (6, 6, 0)
    assert (call.stats.writes, call.stats.writes_failed) == (3, 0)


async def test_a_write_carries_the_time_of_its_first_turn() -> None:
    """The seam: `at` is when the text was spoken."""
    store = ScriptedStore()
    call = Call(store)
    call.exchange(1)
    await idle()
    assert store.calls[0].arguments["at"] == START + timedelta(seconds=1)


async def test_what_is_said_while_a_write_runs_waits_for_the_reply_to_it() -> None:
    """Specification: captured turns are written after each agent reply; each write is billed."""
    store = ScriptedStore().script("append", Work(after=5))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.say("caller", "and another thing")
    await asyncio.sleep(5)
    assert sent(store) == [["question 1", "answer 1"]]
    call.say("agent", "yes?")
    call.capture.wake()
    await idle()
    assert sent(store)[1:] == [["and another thing", "yes?"]]


async def test_a_sentence_before_a_hang_up_is_stored() -> None:
    """Cases C1 and C11: nothing waits for a reply that never comes."""
    store = ScriptedStore()
    call = Call(store)
    call.say("caller", "never mind")
    assert await call.capture.flush(8) == 0
    assert stored(store) == [("caller", "never mind")]


async def test_a_lone_greeting_is_stored() -> None:
    """Case C11, the written rule: everything that was spoken is stored."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "Hello, this is the clinic")
    await call.capture.aclose(8)
    assert stored(store) == [("agent", "Hello, this is the clinic")]


async def test_the_last_sentence_is_in_the_final_write() -> None:
    """Case C2: committed while the flush of the disconnect already runs."""
    store = ScriptedStore().script("append", Work(after=2))
    call = Call(store)
    call.exchange(1)
    flush = asyncio.ensure_future(call.capture.flush(8))
    await asyncio.sleep(1)
    call.say("caller", "my new address is 5 Main Street")
    assert await flush == 0
    assert stored(store) == call.said[ANA]


async def test_an_interrupted_reply_is_marked() -> None:
    """Design 5.1."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "once upon a time", interrupted=True)
    await call.capture.flush(8)
    document = store.document(ANA.container_tag, ANA.document_id)
    assert document is not None
    assert document.endswith("] Agent (interrupted): once upon a time")


async def test_turns_before_any_bind_go_to_the_first_caller_bound() -> None:
    """Specification, review notes: turns captured before any bind still go to the first caller bound."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "welcome", scope=None)
    call.capture.wake()
    call.capture.bound(ANA)
    call.capture.bound(BEN)
    call.say("caller", "hi, Ben here", scope=BEN)
    await call.capture.flush(8)
    assert stored(store, ANA) == [("agent", "welcome")]
    assert stored(store, BEN) == [("caller", "hi, Ben here")]


async def test_a_speaker_without_a_scope_after_a_bind_is_stored_under_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case S7: words of somebody unknown are not given to the bound caller."""
    store = ScriptedStore()
    call = Call(store)
    call.capture.bound(ANA)
    for _ in range(2):
        call.say("caller", "I am somebody else", scope=None)
    assert call.stats.turns_dropped == 2
    call.capture.bound(BEN)
    await call.capture.aclose(8)
    assert store.calls == []
    assert call.stats.turns_dropped == 2
    assert len(caplog.records) == 1


async def test_turns_keep_the_scope_they_were_spoken_under() -> None:
    """Specification: turns already captured stay with the caller who said them. Case L5: A, B, A again."""
    store = ScriptedStore().script("append", Work(after=4))
    call = Call(store)
    for number, scope in enumerate([ANA, BEN, ANA]):
        call.exchange(number, scope=scope)
    assert await call.capture.flush(8) == 0
    assert stored(store, ANA) == call.said[ANA]
    assert stored(store, BEN) == call.said[BEN]


async def test_without_a_bind_there_is_no_request_and_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    """Case S4 and design 5.7."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "welcome", scope=None)
    call.say("caller", "hello", scope=None)
    call.capture.wake()
    assert await call.capture.flush(8) == 2
    await call.capture.aclose(8)
    assert store.calls == []
    assert [r.getMessage() for r in caplog.records] == [
        "The call ended without a caller bound: 2 turns are not stored"
    ]
    assert (call.stats.turns_dropped, call.stats.turns_unwritten) == (2, 0)


async def test_capture_never_stores_nothing() -> None:
    """Specification: `never` disables storing the call."""
    store = ScriptedStore()
    call = Call(store, params=InputParams(capture="never"))
    call.say("agent", "welcome", scope=None)
    call.capture.bound(ANA)
    call.exchange(1)
    await call.capture.aclose(8)
    assert store.calls == []
    assert call.stats == Stats()


async def test_a_transcript_that_comes_after_the_reply_is_put_before_it() -> None:
    """Realtime models emit the caller's transcript late, with the time it was spoken."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "Porto is lovely")
    call.capture.wake()
    call.say("caller", "I moved to Porto", ago=5)
    await idle()
    assert stored(store) == [("caller", "I moved to Porto"), ("agent", "Porto is lovely")]


async def test_a_transcript_that_comes_after_the_write_is_still_stored() -> None:
    """As before, but the reply is already written: the line follows it under a later stamp."""
    store = ScriptedStore()
    call = Call(store)
    call.say("agent", "Porto is lovely")
    call.capture.wake()
    await idle()
    call.say("caller", "I moved to Porto", ago=5)
    await call.capture.flush(8)
    document = store.document(ANA.container_tag, ANA.document_id)
    assert document is not None
    assert document.split("\n") == [
        "[2026-11-29T17:00:01.000Z] Agent: Porto is lovely",
        "[2026-11-29T17:00:01.001Z] Caller: I moved to Porto",
    ]


async def test_blank_turns_are_nothing() -> None:
    """Case C5: no blank line, no request for a buffer of blanks."""
    store = ScriptedStore()
    call = Call(store)
    for text in ("", "  ", "\n", "\u200b"):
        call.say("caller", text)
    call.capture.wake()
    await call.capture.aclose(8)
    assert store.calls == []
    assert call.stats == Stats()


async def test_what_was_recalled_is_not_stored() -> None:
    """Case R11: cleaning comes before anything else; a turn of nothing else is no turn."""

    def clean(text: str) -> str:
        return text.replace("<recalled/>", "")

    store = ScriptedStore()
    call = Call(store, clean=clean)
    call.say("agent", "You <recalled/>like tea")
    call.say("caller", "<recalled/>")
    await call.capture.flush(8)
    assert sent(store) == [["You like tea"]]


async def test_a_recalled_block_that_the_model_repeats_is_not_stored() -> None:
    """Case R11 with the cleaner that the call uses: the block word for word, and the fence in the caller's mouth."""
    block = render_block(Profile(static=("Allergic to nuts",)), (), mode="full", now=START, limit=10)
    assert block is not None
    store = ScriptedStore()
    call = Call(store, clean=strip_fenced)
    call.say("agent", f"You told me: {block} Right?")
    call.say("caller", block)
    await call.capture.flush(8)
    [call_made] = store.called("append")
    assert "nuts" not in call_made.arguments["text"]
    assert "You told me:" in call_made.arguments["text"]


async def test_a_turn_that_cannot_be_cleaned_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Design 4.7 over 5: rather lose a turn than store recalled memory. Nothing raises into the call."""

    def clean(text: str) -> str:
        if "bad" in text:
            raise RuntimeError(text)
        return text

    store = ScriptedStore()
    call = Call(store, clean=clean)
    call.say("caller", "bad words")
    call.say("caller", "bad words")
    call.say("caller", "good words")
    await call.capture.flush(8)
    assert sent(store) == [["good words"]]
    assert (call.stats.turns_captured, call.stats.turns_dropped) == (3, 2)
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert "bad" not in caplog.text


async def test_writes_never_hold_up_the_call(clock: VirtualClock) -> None:
    """Case C7: the service takes 8 s for a write; taking turns and waking cost no time at all."""
    store = ScriptedStore().always("append", Work(after=8))
    call = Call(store)
    before = clock.elapsed
    for number in range(50):
        call.exchange(number)
    assert clock.elapsed == before
    assert await call.capture.flush(60) == 0
    assert stored(store) == call.said[ANA]


async def test_one_document_does_not_wait_for_another() -> None:
    """Design 5.3: one write at a time per document, and only per document."""
    store = ScriptedStore().script("append", Hang())
    call = Call(store)
    call.exchange(1, scope=ANA)
    await asyncio.sleep(1)
    call.exchange(2, scope=BEN)
    await idle()
    assert stored(store, BEN) == call.said[BEN]
    assert stored(store, ANA) == []
    await call.capture.flush(60)
    assert stored(store, ANA) == call.said[ANA]


async def test_writes_of_one_document_never_overlap() -> None:
    """Design 5.3."""
    store = ScriptedStore().always("append", Work(after=3))
    call = Call(store)
    for number in range(10):
        call.exchange(number)
        await asyncio.sleep(1)
    await call.capture.flush(60)
    ends = [(c.started, c.ended) for c in store.calls]
    assert all(end is not None and end <= start for (_, end), (start, _) in pairwise(ends))
    assert stored(store) == call.said[ANA]


async def test_the_buffer_is_capped_and_the_oldest_go(caplog: pytest.LogCaptureFixture) -> None:
    """Design 5.5: counted, and logged once; over all documents and the turns before a bind."""
    store = ScriptedStore()
    call = Call(store, max_buffered_turns=3)
    call.say("caller", "0", scope=None)
    for number in range(1, 7):
        call.say("caller", str(number), scope=ANA if number % 2 else BEN)
    assert (call.stats.turns_captured, call.stats.turns_dropped, call.stats.turns_unwritten) == (7, 4, 3)
    call.capture.bound(ANA)
    await call.capture.flush(8)
    assert stored(store, ANA) == [("caller", "5")]
    assert stored(store, BEN) == [("caller", "4"), ("caller", "6")]
    assert [r.levelname for r in caplog.records] == ["WARNING"]


async def test_the_buffer_is_capped_in_characters_too() -> None:
    """Design 5.5: a turn goes whole, all pieces of it."""
    store = ScriptedStore()
    call = Call(store, max_buffered_chars=300_000)
    call.say("caller", "long " * 50_000)
    call.say("caller", "x" * 60_000)
    await call.capture.flush(8)
    assert [len(words) for _, words in stored(store)] == [60_000]
    assert (call.stats.turns_dropped, call.stats.turns_written) == (1, 1)


async def test_what_is_being_sent_is_not_dropped() -> None:
    """Design 5.5: a request on its way cannot be taken back."""
    store = ScriptedStore().script("append", Work(after=5))
    call = Call(store, max_buffered_turns=2)
    call.exchange(1)
    await asyncio.sleep(1)
    call.say("caller", "too much")
    assert call.stats.turns_dropped == 1
    await call.capture.flush(8)
    assert stored(store) == call.said[ANA][:2]


async def test_flushes_at_the_same_time_write_once() -> None:
    """Case L2: flush from `close`, from the shutdown callback and from `aclose`."""
    store = ScriptedStore().always("append", Work(after=2))
    call = Call(store)
    call.exchange(1)
    call.say("caller", "bye")
    first, second, _ = await asyncio.gather(
        call.capture.flush(8), call.capture.flush(8), call.capture.aclose(8)
    )
    assert (first, second) == (0, 0)
    assert stored(store) == call.said[ANA]


@pytest.mark.parametrize("step", [Hang(), Hang(deaf=True)])
async def test_a_flush_keeps_its_limit(
    step: Hang, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Case L1: a write takes for ever; what was not stored is counted in the log."""
    store = ScriptedStore().always("append", step)
    call = Call(store)
    call.exchange(1)
    before = clock.elapsed
    await call.capture.aclose(8)
    assert clock.elapsed - before <= 8.01
    assert call.stats.turns_unwritten == 2
    assert [r.getMessage() for r in caplog.records] == [
        "Storing the call fails: append was given up before an answer; what was said is kept and written later",
        "The call ended with 2 turns that the memory service did not take",
    ]


@pytest.mark.parametrize("after", [9.0, 15.0])
async def test_a_flush_finds_out_what_became_of_a_write_that_takes_longer_than_it_has(
    after: float, clock: VirtualClock
) -> None:
    """Case L1: a write takes 9 s, 15 s. It is given up in time to read what is stored, and is not sent again."""
    store = ScriptedStore().always("append", Work(after=after))
    call = Call(store)
    call.exchange(1)
    before = clock.elapsed
    await call.capture.aclose(8)
    assert clock.elapsed - before <= 8.01
    assert call.stats.turns_unwritten == 0
    assert stored(store) == call.said[ANA]


async def test_a_write_that_ends_before_it_is_given_up_is_waited_for() -> None:
    """Case L1, the other way: nothing is given up that needs no more than its time."""
    store = ScriptedStore().script("append", Work(after=2.9)).forbid("read")
    call = Call(store)
    call.exchange(1)
    assert await call.capture.flush(8) == 0
    store.verify()
    assert stored(store) == call.said[ANA]


async def test_closing_again_does_nothing_and_later_words_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case C2: after close, written or logged once as lost."""
    store = ScriptedStore()
    call = Call(store)
    call.exchange(1)
    await call.capture.aclose(8)
    await call.capture.aclose(8)
    for number in range(3):
        call.exchange(number)
    assert await call.capture.flush(8) == 0
    await idle()
    assert len(store.calls) == 1
    assert (call.stats.turns_captured, call.stats.turns_written, call.stats.turns_dropped) == (8, 2, 6)
    assert [r.levelname for r in caplog.records] == ["WARNING"]


async def test_closing_without_time_starts_nothing() -> None:
    """`SupermemoryLiveKit.aclose` flushes first and then closes with nothing left of its time."""
    store = ScriptedStore().forbid("append")
    call = Call(store)
    call.say("caller", "hello")
    await call.capture.aclose(0)
    store.verify()
    assert call.stats.turns_unwritten == 1


async def test_another_worker_continues_the_document() -> None:
    """Cases C10 and L3: process 1 writes some turns and dies, process 2 has the same session id."""
    store = ScriptedStore()
    first = Call(store)
    first.exchange(1)
    await first.capture.flush(8)
    second = Call(store)
    second.clock = first.clock
    second.exchange(2)
    await second.capture.flush(8)
    assert stored(store) == first.said[ANA] + second.said[ANA]


async def test_a_long_call_is_stored_whole() -> None:
    """Case C13: 5,000 turns in a call, one of them of 250,000 characters."""
    store = ScriptedStore()
    call = Call(store)
    for number in range(2_500):
        call.say("caller", f"question {number}")
        call.say("agent", f"answer {number} " + "and so on " * 10)
    call.say("caller", "well " * 50_000)
    assert await call.capture.flush(8) == 0
    assert all(len(c.arguments["text"]) <= 100_000 for c in store.calls)
    # Everything is one sequence of words again when the pieces of the long turn are put together.
    words = " ".join(text for _, text in stored(store)).split()
    assert words == " ".join(text for _, text in call.said[ANA]).split()
    assert call.stats.turns_written == 5_001


async def test_waking_outside_a_loop_waits_for_the_next_time() -> None:
    """Nothing raises into the call, set-up code included."""
    store = ScriptedStore()
    call = Call(store)
    call.say("caller", "hello")
    await asyncio.to_thread(call.capture.wake)  # a thread without a loop
    assert store.calls == []
    assert call.stats.turns_unwritten == 1


async def test_turns_without_a_time_get_the_time_of_now() -> None:
    """Every line shows when (design 5.3)."""
    store = ScriptedStore()
    capture = Capture(store, InputParams(), Stats(), now=lambda: START)
    capture.record("caller", "hello", scope=ANA)
    await capture.flush(8)
    assert store.document(ANA.container_tag, ANA.document_id) == "[2026-11-29T17:00:00.000Z] Caller: hello"


async def test_nothing_said_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Case P2, on the quiet paths; the loud ones are tested with the faults."""
    caplog.set_level(logging.DEBUG)
    call = Call(ScriptedStore(), max_buffered_turns=1)
    call.exchange(1)
    await call.capture.aclose(8)
    call.say("caller", "question 2")
    assert caplog.records
    for secret in ("question", "answer", ANA.container_tag, ANA.document_id):
        assert secret not in caplog.text


async def test_what_is_said_while_a_write_runs_waits_for_the_next_wake() -> None:
    """Decision 19: a turn whose reply is under way may yet be withdrawn, however slow the service is."""
    store = ScriptedStore().script("append", Work(after=6))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.exchange(2)
    await asyncio.sleep(1)
    withdrawn = call.capture.record(
        "caller", "forget my address", at=call.clock + timedelta(seconds=1), scope=ANA
    )
    await asyncio.sleep(30)
    assert sent(store) == [["question 1", "answer 1"], ["question 2", "answer 2"]]
    assert withdrawn is not None
    assert call.capture.withdraw({withdrawn}) == 1
    call.clock += timedelta(seconds=5)
    call.exchange(3)
    await idle()
    assert sent(store)[2:] == [["question 3", "answer 3"]]
    await call.capture.aclose(8)


@pytest.mark.parametrize(
    "failure", [ServiceUnavailable("503", status=503), ServiceTimeout("none", uncertain=True)]
)
async def test_what_is_said_while_writes_fail_waits_for_the_next_wake(failure: ServiceError) -> None:
    """Decision 19: the end of a pause makes nothing due that was not."""
    store = ScriptedStore().script("append", Fail(failure))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(0.1)
    call.say("caller", "forget my address")
    await asyncio.sleep(60)
    assert stored(store) == [("caller", "question 1"), ("agent", "answer 1")]
    await call.capture.flush(8)
    assert stored(store)[2:] == [("caller", "forget my address")], "the end of the call waits for nobody"
