"""The test kit by itself: doubles do what they are told and complain about what they are not told."""

# LiveKit's event emitter and its generic models are partly untyped
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from livekit.agents import Agent, function_tool, get_job_context, llm
from supermemory import APIConnectionError, AsyncSupermemory
from tests.support.clock import VirtualClock
from tests.support.jobs import job
from tests.support.privacy import assert_private
from tests.support.sessions import say, started

from supermemory_livekit import testing
from supermemory_livekit.errors import (
    Conflict,
    NotFound,
    PaymentRequired,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import (
    Answer,
    Fail,
    FaultyTransport,
    Hang,
    Reset,
    Respond,
    ScriptedLLM,
    ScriptedStore,
    ToolCall,
    UnexpectedCall,
    Work,
)

TAG = "caller"
AT = datetime(2026, 11, 29, tzinfo=timezone.utc)


async def append(store: ScriptedStore, text: str, *, timeout: float = 10.0, **options: Any) -> str | None:
    options = {"dreaming": "instant", "at": AT, **options}
    return await store.append(TAG, "lk-1", text, timeout=timeout, **options)


async def search(store: ScriptedStore, query: str = "tea", **options: Any) -> list[str]:
    options = {"limit": 10, "threshold": 0.1, "mode": "hybrid", "timeout": 2.0, **options}
    return [hit.text for hit in await store.search(TAG, query, **options)]


# The store


async def test_the_store_works_like_a_service_when_it_has_no_script() -> None:
    """Style 3: a double that needs no set-up for the usual case."""
    with ScriptedStore() as store:
        assert await store.profile(TAG, timeout=2) == Profile()
        store.profiles[TAG] = Profile(static=("Is called Ana.",))
        assert await store.profile(TAG, timeout=2) == Profile(static=("Is called Ana.",))
        first = await append(store, "one")
        assert await append(store, "two") == first
        assert await store.read(TAG, "lk-1", service_id=first, timeout=2) == "one\ntwo"
        assert await store.read(TAG, "lk-2", service_id=None, timeout=2) is None
        assert store.documents == {(TAG, "lk-1"): "one\ntwo"}
        assert [call.operation for call in store.calls] == ["profile"] * 2 + ["append"] * 2 + ["read"] * 2
        assert store.tags == {TAG}


async def test_search_keeps_threshold_limit_and_mode() -> None:
    """The seam, `MemoryStore.search`: best first, none below the threshold, no call text in mode memories."""
    store = ScriptedStore()
    store.hits[TAG] = [
        Hit("weak", 0.05, "a"),
        Hit("chunk", 0.4),
        Hit("best", 0.9, "b"),
        Hit("good", 0.5, "c"),
    ]
    assert await search(store) == ["best", "good", "chunk"]
    assert await search(store, limit=1) == ["best"]
    assert await search(store, threshold=0.6) == ["best"]
    assert await search(store, mode="memories") == ["best", "good"]


async def test_a_remembered_fact_is_found_and_forgotten() -> None:
    """The seam, `remember`, `forget` and `unremember`, with the service's 404 and 409."""
    store = ScriptedStore()
    receipt = await store.remember(TAG, "Likes tea", dreaming="instant", timeout=2)
    (found,) = await store.search(TAG, "likes tea?", limit=5, threshold=0.1, mode="hybrid", timeout=2)
    assert await store.forget(TAG, memory_id=found.memory_id, timeout=2)
    assert await search(store, "likes tea") == []
    with pytest.raises(Conflict):
        await store.forget(TAG, text="Likes tea", timeout=2)
    with pytest.raises(NotFound):
        await store.forget(TAG, text="Likes milk", timeout=2)
    assert receipt is not None
    await store.unremember(TAG, receipt, timeout=2)
    with pytest.raises(NotFound):
        await store.unremember(TAG, receipt, timeout=2)
    assert store.remembered(TAG) == []


async def test_scripted_steps_are_used_in_order_and_then_the_service_works() -> None:
    """Style 3: per operation and per call."""
    store = ScriptedStore().script("search", Fail(ServiceUnavailable("down")), Answer([Hit("told", 0.2)]))
    store.hits[TAG] = [Hit("real", 0.8)]
    with pytest.raises(ServiceUnavailable):
        await search(store)
    assert await search(store) == ["told"]
    assert await search(store) == ["real"]
    store.always("search", Fail(ServiceUnavailable("down again")))
    with pytest.raises(ServiceUnavailable):
        await search(store)
    store.always("search", None)
    assert await search(store) == ["real"]
    assert [type(call.error) for call in store.calls].count(ServiceUnavailable) == 2


async def test_a_hanging_call_ends_at_its_deadline(clock: VirtualClock) -> None:
    """The seam: a method has a deadline; a write that met it is uncertain, whether it was done or not."""
    store = ScriptedStore().script("append", Hang(), Hang(committed=True)).script("search", Hang())
    for text, kept in (("lost", None), ("kept", "kept")):
        with pytest.raises(ServiceTimeout) as caught:
            await append(store, text, timeout=10)
        assert caught.value.uncertain
        assert store.document(TAG, "lk-1") == kept
    assert clock.elapsed == pytest.approx(20)
    with pytest.raises(ServiceTimeout) as caught:
        await search(store)
    assert not caught.value.uncertain


async def test_a_deaf_call_ends_only_when_it_is_cancelled(clock: VirtualClock) -> None:
    """A client that breaks its contract ignores even the deadline; cancellation is recorded and passed on."""
    store = ScriptedStore().always("profile", Hang(deaf=True))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(store.profile(TAG, timeout=2), 100)
    assert isinstance(store.calls[0].error, asyncio.CancelledError)
    assert clock.elapsed == pytest.approx(100)


async def test_a_late_answer_is_done_at_once_and_reported_later(clock: VirtualClock) -> None:
    """Case L8: delays on either side of a deadline."""
    store = ScriptedStore().script("append", Work(after=8), Work(after=15))
    await append(store, "one")
    assert store.calls[0].ended == pytest.approx(store.calls[0].started + 8)
    with pytest.raises(ServiceTimeout):
        await append(store, "two")
    assert store.document(TAG, "lk-1") == "one\ntwo"


async def test_a_failure_can_leave_the_text_stored() -> None:
    """Design 5.4: the unclear end of a write."""
    store = ScriptedStore().script(
        "append", Fail(ServiceUnavailable("reset", uncertain=True), committed=True)
    )
    with pytest.raises(ServiceUnavailable):
        await append(store, "one")
    assert store.document(TAG, "lk-1") == "one"


async def test_an_organisation_without_balance_may_only_write_dynamically() -> None:
    """Design 2: 402 on instant."""
    store = ScriptedStore(instant=False)
    with pytest.raises(PaymentRequired):
        await append(store, "one")
    with pytest.raises(PaymentRequired):
        await store.remember(TAG, "one", dreaming="instant", timeout=2)
    await append(store, "one", dreaming="dynamic")
    assert store.document(TAG, "lk-1") == "one"


@pytest.mark.parametrize("tag", ["", "  "])
async def test_a_blank_container_tag_is_a_fault(tag: str) -> None:
    """Case S4: no request without a tag; also when the code under test swallows the error."""
    store = ScriptedStore()
    with pytest.raises(UnexpectedCall):
        await store.profile(tag, timeout=2)
    with pytest.raises(UnexpectedCall, match="blank"):
        store.verify()


async def test_a_forbidden_call_is_a_fault_that_cannot_be_swallowed() -> None:
    """Style 3: doubles fail loudly."""
    store = ScriptedStore().forbid("append", "remember")
    with pytest.raises(UnexpectedCall):
        await append(store, "one")
    store.allow("append")
    await append(store, "one")
    with pytest.raises(UnexpectedCall, match="'append' was called although it is forbidden"), store:
        pass


async def test_unused_steps_are_a_fault_at_the_end_of_the_context() -> None:
    """Style 3: a script not used up tests less than it says; the test's own error is not hidden by it."""
    with pytest.raises(UnexpectedCall, match="2 scripted step"), ScriptedStore() as store:
        store.script("search", Hang(), Hang())
    unused = ScriptedStore().script("search", Hang())
    with pytest.raises(ZeroDivisionError), unused:
        raise ZeroDivisionError


# The model


async def test_the_model_calls_tools_and_records_what_it_saw() -> None:
    """Replies are computed, requests are recorded, and running out of replies is an error."""

    @function_tool
    async def lookup(name: str) -> str:
        """Look it up."""
        return f"found {name}"

    model = ScriptedLLM([("let me see", ToolCall("lookup", {"name": "x"})), "there it is", "bye"])
    async with started(Agent(instructions="be kind", tools=[lookup]), llm=model) as session:
        assert await say(session, "where is x") == "let me see there it is"
        assert await say(session, "thanks") == "bye"
    assert [seen.last_user for seen in model.seen] == ["where is x", "where is x", "thanks"]
    assert model.seen[0].tools == ("lookup",)
    assert "found x" in model.seen[1].text
    assert [item.name for item in model.seen[1].items if item.type.startswith("function")] == ["lookup"] * 2
    with pytest.raises(AssertionError, match="3 replies"):
        model.chat(chat_ctx=llm.ChatContext.empty())


async def test_the_first_word_comes_when_it_is_told_to(clock: VirtualClock) -> None:
    """Times are the loop's: a first token after 2 s, a word each second."""
    model = ScriptedLLM("one two three", first_token=2, pace=1)
    at: list[float] = []
    async with model.chat(chat_ctx=llm.ChatContext.empty()) as stream:
        async for _ in stream:
            at.append(round(clock.elapsed, 3))
    assert at == [2, 3, 4]
    assert model.last.ended == pytest.approx(model.last.at + 4)


# The wire


def echo(request: httpx.Request) -> httpx.Response:
    served.append(request.url.path)
    return httpx.Response(200, json={"ok": True})


served: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_served() -> None:
    served.clear()


def client_over(transport: FaultyTransport) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport, base_url="http://service", timeout=3)


async def test_requests_without_a_step_reach_the_service() -> None:
    """The wire is transparent until told otherwise, and records everything."""
    transport = FaultyTransport(httpx.MockTransport(echo))
    async with client_over(transport) as client:
        assert (await client.post("/v4/search", json={"q": "tea"})).json() == {"ok": True}
    (seen,) = transport.sent("POST /v4/*")
    assert (seen.url, seen.body, seen.status) == ("http://service/v4/search", {"q": "tea"}, 200)
    assert transport.closed == 1
    transport.verify()


@pytest.mark.parametrize(
    ("step", "error", "done"),
    [
        (Reset(), httpx.ReadError, False),
        (Reset(committed=True), httpx.ReadError, True),
        (Reset(connected=False), httpx.ConnectError, False),
        (Hang(), httpx.ReadTimeout, False),
        (Hang(committed=True), httpx.ReadTimeout, True),
        (Work(after=5), httpx.ReadTimeout, True),
        (Fail(httpx.RemoteProtocolError("half an answer"), committed=True), httpx.RemoteProtocolError, True),
    ],
)
async def test_a_broken_request_is_done_or_not_as_scripted(
    clock: VirtualClock, step: Any, error: type[Exception], done: bool
) -> None:
    """Design 5.4: resets and timeouts on either side of the commit."""
    transport = FaultyTransport(httpx.MockTransport(echo)).script("POST /v3/documents", step)
    async with client_over(transport) as client:
        with pytest.raises(error):
            await client.post("/v3/documents", json={})
        assert bool(served) is done
        assert transport.requests[0].status is None
        assert (await client.post("/v3/documents", json={})).status_code == 200
    transport.verify()


async def test_any_answer_can_be_given_in_place_of_the_service(clock: VirtualClock) -> None:
    """Design 6: statuses, headers, garbage and wrong shapes, late if need be."""
    transport = FaultyTransport(httpx.MockTransport(echo)).script(
        "* /v4/*",
        Respond(429, {"error": "slow down"}, headers={"retry-after": "7"}),
        Respond(200, b"<html>not json"),
        Respond(200, ["wrong", "shape"], after=2, committed=True),
    )
    async with client_over(transport) as client:
        answers = [await client.post("/v4/profile", json={}) for _ in range(3)]
    assert (answers[0].status_code, answers[0].headers["retry-after"]) == (429, "7")
    assert answers[1].text == "<html>not json"
    assert answers[2].json() == ["wrong", "shape"]
    assert len(served) == 1
    assert clock.elapsed == pytest.approx(2)


async def test_a_standing_fault_lasts_until_it_is_lifted() -> None:
    """An outage and its end."""
    transport = FaultyTransport(httpx.MockTransport(echo)).always("* *", Respond(503, {}))
    async with client_over(transport) as client:
        assert [(await client.get("/x")).status_code for _ in range(2)] == [503, 503]
        transport.always("* *", None)
        assert (await client.get("/x")).status_code == 200


async def test_a_request_that_nobody_expects_is_a_fault() -> None:
    """Style 3: without a service behind it every request has to be scripted, and every step used."""
    transport = FaultyTransport().script("POST /used", Respond(200, {})).script("POST /unused", Reset())
    async with client_over(transport) as client:
        assert (await client.post("/used")).status_code == 200
        with pytest.raises(UnexpectedCall):
            await client.get("/other")
    with pytest.raises(
        UnexpectedCall, match=r"GET /other was not expected; 1 scripted step\(s\) of 'POST /unused'"
    ):
        transport.verify()


async def test_the_real_sdk_over_the_real_service_meets_a_reset_after_the_commit(tmp_path: Path) -> None:
    """Design 5.4: what the SDK reports as failed may be stored; the fault lies between two real parts."""
    pytest.importorskip("starlette")
    local = importlib.import_module("supermemory_livekit.local")
    engine = local.Engine(tmp_path / "memory.db")
    service = httpx.ASGITransport(app=local.create_app(engine, api_key=None))
    wire = FaultyTransport(service).script("POST /v3/documents", Reset(committed=True))
    client = AsyncSupermemory(
        api_key="none",
        base_url="http://local",
        max_retries=0,
        http_client=httpx.AsyncClient(transport=wire),
    )
    try:
        with pytest.raises(APIConnectionError):
            await client.add(content="moved to Porto", container_tag=TAG, custom_id="lk-1")
        assert (await client.documents.get("lk-1")).content == "moved to Porto"
    finally:
        await client.close()
        await engine.aclose()
    wire.verify()


# The clock


async def test_waiting_takes_no_real_time(clock: VirtualClock) -> None:
    """Style 6. Python's own clocks follow, and timers run in their order."""
    wall, monotonic = time.time(), time.monotonic()
    order: list[int] = []
    asyncio.get_running_loop().call_later(7200, order.append, 2)
    asyncio.get_running_loop().call_later(3600, order.append, 1)
    await asyncio.sleep(10_000)
    assert order == [1, 2]
    assert clock.elapsed == pytest.approx(10_000)
    assert time.time() - wall == pytest.approx(10_000)
    assert time.monotonic() - monotonic == pytest.approx(10_000)
    assert llm.ChatMessage(role="user", content=[]).created_at - wall == pytest.approx(10_000)


async def test_time_stands_still_while_a_thread_works(clock: VirtualClock) -> None:
    """A deadline of virtual seconds must not pass while SQLite or a model works in a thread."""
    release = threading.Event()
    threading.Timer(0.05, release.set).start()
    # nothing but the deadline is left to wake the loop while the thread works
    assert await asyncio.wait_for(asyncio.to_thread(release.wait, 20), 1)
    assert clock.elapsed == 0


async def test_time_stands_still_for_a_thread_whose_caller_gave_up(clock: VirtualClock) -> None:
    """A cancelled `to_thread` runs on; its work is not torn apart by a jump."""
    begun, release = threading.Event(), threading.Event()

    def work() -> float:
        begun.set()
        release.wait(20)
        return clock.elapsed

    loop = asyncio.get_running_loop()
    working = loop.run_in_executor(None, work)
    await loop.run_in_executor(None, begun.wait, 20)
    working.cancel()
    threading.Timer(0.05, release.set).start()
    await asyncio.sleep(30)
    ended = await loop.run_in_executor(None, release.is_set)
    assert ended
    assert clock.elapsed == pytest.approx(30)


async def test_time_stands_still_while_it_is_held(clock: VirtualClock) -> None:
    """For threads of which the loop knows nothing."""
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()
    threading.Timer(0.05, loop.call_soon_threadsafe, [woken.set]).start()
    with clock.hold():
        await asyncio.wait_for(woken.wait(), 1)
    assert clock.elapsed == 0
    await asyncio.sleep(1)
    assert clock.elapsed == pytest.approx(1)


async def test_the_clock_is_real_unless_it_is_asked_for() -> None:
    """Other tests keep a normal loop."""
    loop = asyncio.get_running_loop()
    assert abs(loop.time() - time.monotonic()) < 1
    assert time.time.__module__ == "time"


# Jobs


async def test_a_job_runs_its_shutdown_callbacks_with_the_session_closed_before() -> None:
    """Reference, section 4: session, on_session_end, then callbacks; the job context is the current one."""
    order: list[str] = []
    with job(job_metadata="from the dispatch") as running:
        assert get_job_context() is running.context
        assert running.context.job.metadata == "from the dispatch"

        async def flush() -> None:
            order.append("callback")

        async def ended(_: object) -> None:
            order.append("session end")

        running.context.add_shutdown_callback(flush)
        async with started(Agent(instructions="x"), llm=ScriptedLLM()) as session:
            session.on("close", lambda _: order.append("close"))
            await running.end(session, on_session_end=ended)
    assert order == ["close", "session end", "callback"]
    assert (running.killed, running.errors, running.left) == (False, [], [])


async def test_a_callback_that_raises_cancels_the_others() -> None:
    """Reference, section 4: callbacks are gathered without `return_exceptions`."""
    done: list[str] = []
    with job() as running:

        async def flush() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                done.append("cancelled")
                raise

        async def fails() -> None:
            raise RuntimeError("another callback")

        running.context.add_shutdown_callback(flush)
        running.context.add_shutdown_callback(fails)
        await running.end()
    assert done == ["cancelled"]
    assert [str(error) for error in running.errors] == ["another callback"]
    assert not running.killed


async def test_tasks_that_nobody_awaits_are_cancelled_with_the_job(clock: VirtualClock) -> None:
    """Reference, section 4: a task that is only started in a close handler is lost."""
    tasks: list[asyncio.Task[None]] = []
    with job() as running:
        tasks.append(asyncio.create_task(asyncio.sleep(1), name="flush nobody awaits"))
        await running.end()
    assert running.left == ["flush nobody awaits"]
    assert tasks[0].cancelled()


async def test_a_job_that_takes_too_long_is_killed(clock: VirtualClock) -> None:
    """Case L1: ten seconds, counted from the callbacks on; without a limit the job takes its time."""
    done: list[float] = []
    at_kill: list[list[float]] = []

    async def slow() -> None:
        await asyncio.sleep(12)
        done.append(clock.elapsed)

    with job() as running:
        running.context.add_shutdown_callback(slow)
        await running.end(at_kill=lambda: at_kill.append(list(done)))
        assert running.killed
        assert at_kill == [[]]
        assert clock.elapsed == pytest.approx(10)
    with job() as running:
        running.context.add_shutdown_callback(slow)
        await running.end(time_limit=None)
        assert not running.killed
    assert done == [pytest.approx(22)]


# Privacy


def test_words_are_found_wherever_a_record_holds_them(caplog: pytest.LogCaptureFixture) -> None:
    """Case P2: message, arguments, exception text and extras; `lk.pii.*` is LiveKit's place for them."""
    log = logging.getLogger("somewhere.below")
    caplog.set_level(logging.DEBUG)

    def raised() -> None:
        try:
            raise ValueError("about porto")
        except ValueError:
            log.exception("failed")

    ways: list[Callable[[], None]] = [
        lambda: log.debug("moved to Porto"),
        lambda: log.info("moved to %s", "Porto"),
        raised,
        lambda: log.warning("x", extra={"heard": "PORTO"}),
    ]
    for way in ways:
        caplog.clear()
        way()
        with pytest.raises(pytest.fail.Exception):
            assert_private(caplog, ["Porto"])
        assert_private(caplog, ["Lisbon"])
        assert_private(caplog, ["Porto"], logger="elsewhere")
    caplog.clear()
    log.warning("x", extra={"lk.pii.heard": "Porto"})
    assert_private(caplog, ["Porto"], logger="somewhere")


def test_public_names_are_sorted_and_exist() -> None:
    """Style 1."""
    assert testing.__all__ == sorted(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)
