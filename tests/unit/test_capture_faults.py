from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import math
from datetime import datetime

import pytest
from tests.support.clock import VirtualClock
from tests.unit.capturing import ANA, BEN, Call, sent, stored

from supermemory_livekit.errors import (
    AccessDenied,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.session.ending import CLOSING_SHARE, FINAL_BUDGET
from supermemory_livekit.store import Dreaming
from supermemory_livekit.testing import Answer, Fail, Hang, ScriptedStore, Work

pytestmark = pytest.mark.usefixtures("clock")

DOWN = ServiceUnavailable("append answered 503", status=503)
BROKEN = ServiceUnavailable("append lost its connection", uncertain=True)


def starts(store: ScriptedStore) -> list[float]:
    """Seconds between the attempts to write."""
    times = [call.started for call in store.called("append")]
    return [round(b - a, 3) for a, b in itertools.pairwise(times)]


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, without what was only logged for debugging."""
    return [record.levelname for record in caplog.records if record.levelno > logging.DEBUG]


# -- a write with a clear end --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        DOWN,
        RateLimited("append answered 429"),
        NotFound("append answered 404", status=404),
        Conflict("append answered 409", status=409),
        RequestRejected("append answered 400", status=400),
        AccessDenied("append answered 401", status=401),
        PaymentRequired("append answered 402", status=402),
        TypeError("a bug"),
        ServiceTimeout("append could not connect in time"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_fails_nothing_is_lost_once_the_service_is_back(error: Exception) -> None:
    """Design 5.4 and the failure policy: turns are kept, and written once before the call ends."""
    store = ScriptedStore().always("append", Fail(error))
    call = Call(store)
    for number in range(3):
        call.exchange(number)
        await asyncio.sleep(20)
    assert stored(store) == []
    assert call.stats.turns_unwritten == 6
    assert call.stats.writes_failed == len(store.called("append"))
    store.always("append", None)
    assert await call.capture.flush(8) == 0
    assert stored(store) == call.said[ANA]
    assert (call.stats.turns_unwritten, call.stats.turns_written) == (0, 6)


async def test_a_refused_write_is_repeated_without_reading_the_document() -> None:
    """Design 5.4: only an unclear end needs a look at what is stored."""
    store = ScriptedStore().script("append", Fail(DOWN)).forbid("read")
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(60)
    store.verify()
    assert stored(store) == call.said[ANA]


async def test_a_transcript_that_comes_after_a_refused_write_is_put_in_its_place() -> None:
    """What certainly was not stored is ordered anew."""
    store = ScriptedStore().script("append", Fail(DOWN))
    call = Call(store)
    call.say("agent", "Porto is lovely")
    call.capture.wake()
    await asyncio.sleep(0.5)
    call.say("caller", "I moved to Porto", ago=5)
    await asyncio.sleep(60)
    assert stored(store) == [("caller", "I moved to Porto"), ("agent", "Porto is lovely")]


async def test_pauses_grow_from_one_second_to_thirty() -> None:
    """Failure policy: exponential, with jitter (here half of its range)."""
    store = ScriptedStore().always("append", Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(200)
    assert starts(store)[:7] == [1.25, 2.5, 5, 10, 20, 25, 25]


async def test_a_reply_does_not_cut_a_pause_short() -> None:
    """An outage meets no extra requests because the call goes on."""
    store = ScriptedStore().always("append", Fail(DOWN))
    call = Call(store)
    for number in range(100):
        call.exchange(number)
        await asyncio.sleep(0.2)
    assert starts(store) == [1.25, 2.5, 5, 10]


async def test_after_a_success_pauses_start_small_again() -> None:
    """An outage does not slow down the next one."""
    store = ScriptedStore().script("append", Fail(DOWN), Fail(DOWN), Work(), Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(10)
    call.exchange(2)
    await asyncio.sleep(1.3)
    assert stored(store) == call.said[ANA]


async def test_the_second_chunk_fails_and_the_first_is_not_sent_again() -> None:
    """Case C13."""
    store = ScriptedStore().script("append", Work(), Fail(DOWN))
    call = Call(store)
    call.say("caller", "first " * 20_000)
    call.say("caller", "second " * 10_000)
    call.capture.wake()
    await asyncio.sleep(60)
    assert [words[0].split()[0] for words in sent(store)] == ["first", "first", "first"]
    assert [len(words) for words in sent(store)] == [1, 2, 2]
    assert [text.split()[0] for _, text in stored(store)] == ["first", "first", "second"]


async def test_a_late_turn_does_not_come_between_the_pieces_of_a_long_one() -> None:
    """Cases C12 and C13 together: the second piece fails, an earlier turn comes in late."""
    store = ScriptedStore().script("append", Work(), Fail(DOWN))
    call = Call(store)
    call.say("agent", "long " * 30_000)
    call.capture.wake()
    await asyncio.sleep(0.5)
    call.say("caller", "early", ago=60)
    await call.capture.flush(8)
    assert [text.split()[0] for _, text in stored(store)] == ["long", "long", "early"]


# -- 429, 402, 401 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "pause"),
    [
        (7.0, 8.75),
        (3_600.0, 75.0),
        (0.0, 1.25),
        (None, 1.25),
        (-1.0, 1.25),
        (math.nan, 1.25),
        (math.inf, 75.0),
    ],
)
async def test_a_rate_limit_is_waited_for_within_bounds(hint: float | None, pause: float) -> None:
    """Failure policy, 429: retry after the hint, with jitter."""
    store = ScriptedStore().script("append", Fail(RateLimited("append answered 429", retry_after=hint)))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(120)
    assert starts(store) == [pause]
    assert stored(store) == call.said[ANA]


async def test_without_balance_the_call_is_stored_on_the_default_schedule(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case P10, design 2: 402 on instant is repeated once as dynamic; instant is not tried again."""
    store = ScriptedStore(instant=False)
    call = Call(store)
    for number in range(3):
        call.exchange(number)
        await asyncio.sleep(1)
    modes = [c.arguments["dreaming"] for c in store.called("append")]
    assert modes == ["instant", "dynamic", "dynamic", "dynamic"]
    assert starts(store)[0] == 0
    assert stored(store) == call.said[ANA]
    assert levels(caplog) == ["WARNING"]


async def test_without_any_balance_there_is_one_error_and_the_turns_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case P10: 402 on instant and then on dynamic."""
    store = ScriptedStore().always("append", Fail(PaymentRequired("append answered 402", status=402)))
    call = Call(store)
    for number in range(20):
        call.exchange(number)
        await asyncio.sleep(5)
    assert starts(store) == [0, 37.5]
    assert levels(caplog).count("ERROR") == 1
    attempts = len(store.called("append"))
    assert await call.capture.flush(8) == 40
    assert len(store.called("append")) == attempts + 1


async def test_a_wrong_key_is_one_error_and_one_more_attempt_at_the_end(
    caplog: pytest.LogCaptureFixture, clock: VirtualClock
) -> None:
    """Case P10: 401 is one ERROR with a hint; no quick retry; turns kept; the flush tries once."""
    store = ScriptedStore().always("append", Fail(AccessDenied("append answered 401", status=401)))
    call = Call(store)
    for number in range(10):
        call.exchange(number)
        await asyncio.sleep(1)
    before = clock.elapsed
    assert await call.capture.flush(8) == 20
    assert clock.elapsed - before < 0.1
    assert len(store.called("append")) == 2
    assert levels(caplog) == ["ERROR"]
    assert "SUPERMEMORY_API_KEY" in caplog.text


async def test_an_outage_does_not_hide_that_a_person_must_act(caplog: pytest.LogCaptureFixture) -> None:
    """Failure policy, 401: one ERROR, also when a timeout was reported before."""
    caplog.set_level(logging.INFO)
    store = ScriptedStore().script(
        "append", Fail(DOWN), Fail(AccessDenied("append answered 403", status=403))
    )
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(100)
    assert levels(caplog) == ["WARNING", "ERROR", "INFO", "INFO"]


# -- outages in the log --------------------------------------------------------------------------------------


async def test_a_call_of_failing_writes_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Case C15: one WARNING per outage, a counter shows what is unwritten, memory stays bounded."""
    caplog.set_level(logging.INFO)
    store = ScriptedStore().always("append", Fail(DOWN))
    call = Call(store, max_buffered_turns=50)
    for number in range(100):
        call.exchange(number)
        await asyncio.sleep(5)
    assert levels(caplog) == ["WARNING", "WARNING"]  # the outage, and that the buffer overflowed
    assert (call.stats.turns_unwritten, call.stats.turns_dropped) == (50, 150)
    store.always("append", None)
    await call.capture.aclose(8)
    assert levels(caplog)[2:] == ["INFO"]
    assert stored(store) == call.said[ANA][-50:]


async def test_two_documents_share_one_outage(caplog: pytest.LogCaptureFixture) -> None:
    """Case C15: an outage of the service is said once, and its end when no document fails any more."""
    caplog.set_level(logging.INFO)
    store = ScriptedStore().script("append", *[Fail(DOWN)] * 4)
    call = Call(store)
    call.exchange(1, scope=ANA)
    call.exchange(2, scope=BEN)
    await asyncio.sleep(60)
    assert levels(caplog) == ["WARNING", "INFO"]


async def test_an_outage_is_not_over_while_another_document_still_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case C15: a document that works again must not make the next failure of another one a new outage."""

    class RefusesBen(ScriptedStore):
        async def append(
            self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
        ) -> str | None:
            if tag == BEN.container_tag:
                raise DOWN
            return await super().append(tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout)

    caplog.set_level(logging.INFO)
    call = Call(RefusesBen())
    call.exchange(1, scope=BEN)
    for number in range(2, 8):
        await asyncio.sleep(5)
        call.exchange(number, scope=ANA)
    await asyncio.sleep(60)
    assert levels(caplog) == ["WARNING"]


async def test_nothing_said_reaches_the_log_when_all_fails(caplog: pytest.LogCaptureFixture) -> None:
    """Case P2: no spoken word, tag or id, also when an exception quotes the request."""
    caplog.set_level(logging.DEBUG)
    store = ScriptedStore().always("read", Fail(ValueError("answer 1")))
    faults = [ValueError("question 1"), BROKEN, KeyError(ANA.container_tag), DOWN]
    store.script("append", *[Fail(fault) for fault in faults])
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(600)
    await call.capture.aclose(8)
    assert stored(store) == call.said[ANA]
    for secret in ("question", "answer 1", ANA.container_tag, ANA.document_id):
        assert secret not in caplog.text


# -- a write with an unclear end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [BROKEN, ServiceTimeout("append got no answer"), ValueError("odd")], ids=repr
)
@pytest.mark.parametrize("committed", [True, False])
async def test_a_write_with_an_unclear_end_is_stored_once(error: Exception, committed: bool) -> None:
    """Design 5.4 and case C14: none stored twice, none lost. Before the retry the document is read."""
    store = ScriptedStore().script("append", Work(), Fail(error, committed=committed))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.exchange(2)
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]
    assert len(store.called("append")) == (2 if committed else 3)
    reads = [c.arguments["service_id"] for c in store.called("read")]
    assert reads == ["doc_1"] * (1 if committed else 2)  # what is missing is looked for again, later


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("deaf", [True, False])
async def test_a_write_times_out_after_ten_seconds(committed: bool, deaf: bool) -> None:
    """Specification: writes time out after 10s and keep their turns, also when the client does not."""
    store = ScriptedStore().script("append", Work(), Hang(committed=committed, deaf=deaf))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.exchange(2)
    await asyncio.sleep(60)
    hung = store.called("append")[1]
    assert hung.ended is not None
    assert hung.ended - hung.started == pytest.approx(10)
    assert stored(store) == call.said[ANA]


class CommitsLate(ScriptedStore):
    """The second write is carried out some time after its client has gone, which noticed nothing of it."""

    def __init__(self, late: float, ends: float) -> None:
        super().__init__()
        self.late, self.ends = late, ends

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        work = super().append(tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout)
        if len(self.called("append")) != 1 or self.ends < 0:
            return await work
        ends, self.ends = self.ends, -1.0
        try:
            await asyncio.sleep(ends)
            raise BROKEN
        finally:
            asyncio.get_running_loop().call_later(self.late, lambda: asyncio.ensure_future(work))


@pytest.mark.parametrize("ends", [0.1, 60.0], ids=["reset", "timeout"])
@pytest.mark.parametrize("late", [0.3, 1.0, 1.9])
async def test_a_write_that_is_carried_out_after_its_client_has_gone_is_stored_once(
    late: float, ends: float
) -> None:
    """0005: a line is believed missing only when a late commit is over."""
    store = CommitsLate(late, ends)
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.exchange(2)
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]


@pytest.mark.parametrize("ends", [0.1, 60.0], ids=["reset", "given up"])
@pytest.mark.parametrize("late", [0.3, 1.9, None])
async def test_a_flush_waits_for_a_late_commit_and_has_time_to_send_again(
    late: float | None, ends: float
) -> None:
    """0005: neither lost nor doubled within the budget that the end of a call has for writing."""
    store = ScriptedStore().script("append", Work(), Hang() if ends > 10 else Fail(BROKEN))
    if late is not None:
        store = CommitsLate(late, ends)
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(1)
    call.exchange(2)
    assert await call.capture.flush(FINAL_BUDGET - CLOSING_SHARE) == 0
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]


async def test_a_client_that_swallows_cancellation_holds_up_nothing() -> None:
    """Design 5.6: the end of a call is bounded, whatever the client does."""

    class Stubborn(ScriptedStore):
        async def append(
            self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
        ) -> str | None:
            for _ in range(30):
                try:
                    await asyncio.sleep(100)
                except asyncio.CancelledError:
                    continue
            return None

    call = Call(Stubborn())
    call.exchange(1)
    await asyncio.wait_for(call.capture.aclose(8), 9.1)
    assert call.stats.turns_unwritten == 2
    await asyncio.sleep(4_000)


async def test_a_request_that_fails_after_it_was_given_up_is_noticed_by_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every background task has an owner that reads its exception: asyncio has nothing to complain about."""

    class FailsLate(ScriptedStore):
        async def append(
            self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
        ) -> str | None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                raise ValueError(text) from None
            return None

    call = Call(FailsLate())
    call.exchange(1)
    await asyncio.sleep(11)
    await call.capture.aclose(0)
    await asyncio.sleep(1)
    del call
    gc.collect()  # asyncio complains when a task goes whose exception nobody has read
    assert "asyncio" not in {record.name for record in caplog.records}
    assert "question" not in caplog.text


async def test_a_client_that_cancels_itself_does_not_end_the_writer() -> None:
    """A cancellation that nobody asked for is a failure of that write."""
    store = ScriptedStore().script("append", Fail(asyncio.CancelledError()))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]


async def test_lines_of_an_unclear_write_keep_their_stamps_when_sent_again() -> None:
    """0005: should a line be stored twice after all, its stamp tells."""
    store = ScriptedStore().script("append", Fail(BROKEN))
    call = Call(store)
    call.say("agent", "Porto is lovely")
    call.capture.wake()
    await asyncio.sleep(0.5)
    call.say("caller", "I moved to Porto", ago=5)
    await asyncio.sleep(60)
    first, second, *_ = [c.arguments["text"] for c in store.called("append")]
    assert first == second
    assert stored(store) == [("agent", "Porto is lovely"), ("caller", "I moved to Porto")]


async def test_of_a_write_that_was_stored_in_part_the_rest_is_sent() -> None:
    """Design 5.4: none twice, none lost, for a service that does not store a text as a whole."""

    class Partial(ScriptedStore):
        async def append(
            self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
        ) -> str | None:
            first, _, rest = text.partition("\n")
            receipt = await super().append(tag, custom_id, first, dreaming=dreaming, at=at, timeout=timeout)
            if rest:
                raise BROKEN
            return receipt

    store = Partial()
    call = Call(store)
    call.exchange(1)
    call.exchange(2)
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]


async def test_while_the_document_cannot_be_read_nothing_is_sent_again() -> None:
    """Design 5.4: settling that fails is tried again later."""
    store = ScriptedStore().script("append", Fail(BROKEN, committed=True)).always("read", Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(300)
    assert len(store.called("append")) == 1
    assert call.stats.turns_unwritten == 2
    store.always("read", None)
    assert await call.capture.flush(8) == 0
    assert stored(store) == call.said[ANA]


@pytest.mark.parametrize(
    "error", [Conflict("read answered 409", status=409), PaymentRequired("read answered 402", status=402)]
)
async def test_a_read_that_is_refused_for_the_moment_is_repeated_until_it_tells(error: ServiceError) -> None:
    """0005: 402 and 409 come and go, so three of them are no reason to send what may be stored. Found by the soak."""
    store = ScriptedStore().script("append", Fail(BROKEN, committed=True))
    store.script("read", *[Fail(error)] * 4)
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(120)
    assert len(store.called("append")) == 1
    assert stored(store) == call.said[ANA]
    assert call.stats.turns_unwritten == 0


async def test_a_document_that_is_not_there_at_once_is_looked_for_again() -> None:
    """Public reports: a GET right after an add answers 404."""
    store = (
        ScriptedStore()
        .script("append", Fail(BROKEN, committed=True))
        .script("read", Answer(None), Answer(None))
    )
    call = Call(store)
    call.exchange(1)
    assert await call.capture.flush(8) == 0
    assert stored(store) == call.said[ANA]


async def test_each_request_with_an_unclear_end_is_looked_for_anew() -> None:
    """0005: that the first request was not stored, believed after three reads, says nothing of the second."""
    store = ScriptedStore().script("append", Fail(BROKEN), Fail(BROKEN, committed=True))
    store.script("read", Work(), Work(), Work(), Fail(Conflict("read answered 409", status=409)))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(120)
    store.verify()
    assert stored(store) == call.said[ANA]
    assert call.stats.turns_unwritten == 0


async def test_with_a_client_that_cannot_read_lines_are_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    """0005: a line stored twice can be told by its stamp, a lost one is gone. Said once."""
    store = ScriptedStore().always("read", Fail(NotImplementedError()))
    store.script("append", Fail(BROKEN), Work(), Fail(BROKEN))
    call = Call(store)
    for number in range(2):
        call.exchange(number)
        await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]
    assert len(store.called("read")) == 1
    assert [r.getMessage() for r in caplog.records if "read" in r.getMessage()] == [
        "Stored documents cannot be read: a write with an unclear end is sent again and may be stored twice"
    ]


@pytest.mark.parametrize(
    "error",
    [
        AccessDenied("read answered 403", status=403),
        RequestRejected("read answered 405", status=405),
        NotFound("read answered 404", status=404),
        TypeError("an answer nobody foresaw"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_service_that_refuses_to_be_read_costs_no_turn(error: Exception) -> None:
    """0005: writes work, reading never does; the turns must not wait for ever."""
    store = ScriptedStore().script("append", Fail(BROKEN)).always("read", Fail(error))
    call = Call(store)
    call.exchange(1)
    assert await call.capture.flush(8) == 0
    assert stored(store) == call.said[ANA]
    assert len(store.called("read")) == 3


# -- flush ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DOWN, RateLimited("append answered 429", retry_after=60)], ids=repr)
async def test_a_flush_ends_the_pause_of_an_outage(error: ServiceError, clock: VirtualClock) -> None:
    """Design 5.6: the call ends now, so the write is tried now."""
    store = ScriptedStore().script("append", Fail(error))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(0.5)
    before = clock.elapsed
    assert await call.capture.flush(8) == 0
    assert clock.elapsed - before < 0.1


@pytest.mark.parametrize("hint", [None, 1.0, 60.0])
async def test_a_flush_tries_again_while_it_has_time(hint: float | None, clock: VirtualClock) -> None:
    """Design 5.6: within the total, also when the service asks for more time than there is."""
    store = ScriptedStore().always("append", Fail(RateLimited("append answered 429", retry_after=hint)))
    call = Call(store)
    call.exchange(1)
    before = clock.elapsed
    assert await call.capture.flush(8) == 2
    assert clock.elapsed - before < 8  # it does not sit out time that is too short for another attempt
    assert 3 <= len(store.called("append")) <= 10


async def test_a_service_that_comes_back_during_the_flush_gets_everything() -> None:
    """Design 5.6, and nothing said is lost once the service is back before the call ends."""
    store = ScriptedStore().always("append", Fail(DOWN)).always("read", Fail(DOWN))
    call = Call(store)
    for number in range(3):
        call.exchange(number)
    call.exchange(4, scope=BEN)
    flush = asyncio.ensure_future(call.capture.flush(8))
    await asyncio.sleep(5)
    store.always("append", None).always("read", None)
    assert await flush == 0
    assert stored(store, ANA) == call.said[ANA]
    assert stored(store, BEN) == call.said[BEN]


async def test_a_flush_without_time_leaves_a_pause_as_it_is() -> None:
    """A flush that starts nothing must not end the pause that would have brought the next attempt."""
    store = ScriptedStore().script("append", Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    await asyncio.sleep(0.5)
    assert await call.capture.flush(0) == 2
    await asyncio.sleep(60)
    assert starts(store) == [1.25]
    assert stored(store) == call.said[ANA]


async def test_after_a_flush_failures_pause_as_long_as_before_it() -> None:
    """Only while a flush waits are attempts made in quick succession."""
    store = ScriptedStore().script("append", Work(), Fail(DOWN), Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    assert await call.capture.flush(8) == 0
    call.exchange(2)
    await asyncio.sleep(60)
    assert starts(store)[1:] == [1.25, 2.5]


async def test_after_a_flush_that_failed_the_call_goes_on() -> None:
    """A flush is no end: its turns are written later in the background."""
    store = ScriptedStore().always("append", Fail(DOWN))
    call = Call(store)
    call.exchange(1)
    assert await call.capture.flush(3) == 2
    store.always("append", None)
    await asyncio.sleep(60)
    assert stored(store) == call.said[ANA]


async def test_a_cancelled_flush_leaves_the_writers_at_work() -> None:
    """Case C14: cancellation is passed on, the turns are stored all the same."""
    store = ScriptedStore().script("append", Work(after=5))
    call = Call(store)
    call.exchange(1)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(call.capture.flush(8), 1)
    await asyncio.sleep(10)
    assert sent(store) == [["question 1", "answer 1"]]
    assert call.stats.turns_unwritten == 0


async def test_a_cancelled_close_can_be_called_again() -> None:
    """Case C14."""
    store = ScriptedStore().script("append", Hang())
    call = Call(store)
    call.exchange(1)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(call.capture.aclose(8), 1)
    await call.capture.aclose(30)
    assert stored(store) == call.said[ANA]
