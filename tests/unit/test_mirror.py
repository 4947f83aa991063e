"""The mirror of a caller's memory: what it holds, when it is there, and what it never shows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.clock import VirtualClock
from tests.support.privacy import assert_private
from tests.unit.mirroring import NOW, TAG, WordModel, facts, found, opened, settled, until

from supermemory_livekit.errors import (
    AccessDenied,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceUnavailable,
)
from supermemory_livekit.mirror.mirror import CALLS_INTERVAL, REFRESH_INTERVAL, Bounds, Mirror
from supermemory_livekit.store import MemoryPage, Profile, StoredCall, StoredMemory
from supermemory_livekit.testing import Answer, Fail, Hang, ScriptedStore, Work

DOG = "Has a dog called Rex"
TEA = "Likes green tea"


def knowing(*texts: str, static: bool = False) -> ScriptedStore:
    store = ScriptedStore()
    store.stored[TAG] = facts(*texts, static=static)
    return store


def call(text: str, *, custom_id: str | None = "lk-1", processed: bool = False, id: str = "d1") -> StoredCall:  # noqa: A002
    return StoredCall(id, custom_id, text, processed, NOW - timedelta(hours=1))


# -- loading


async def test_what_the_service_knows_is_found_here_with_its_id_and_age() -> None:
    """Issue "memory that costs the caller no time", point 1: a local search once it has loaded."""
    store = knowing(TEA, DOG)
    said = NOW - timedelta(days=9)
    store.stored[TAG].append(StoredMemory("m9", "Lives in Porto", updated_at=NOW, said_at=said))
    async with opened(store) as mirror:
        assert not mirror.ready
        assert await mirror.wait_until_ready(10)
        await until(lambda: mirror.complete)
        (dog,) = await mirror.search("my dog", limit=5, threshold=0.1)
        assert (dog.text, dog.memory_id, dog.updated_at) == (DOG, "m1", NOW - timedelta(hours=1))
        (porto,) = await mirror.search("porto", limit=5, threshold=0.1)
        assert porto.updated_at == said
        assert (
            await found(mirror, "porto dog tea", limit=2, threshold=0.0)
            == (await found(mirror, "porto dog tea", limit=9, threshold=0.0))[:2]
        )
        assert await found(mirror, "porto", threshold=1.0) == []
    store.forbid("search").verify()


async def test_a_long_list_is_read_to_its_end_after_a_short_first_page() -> None:
    """Issue, point 1: paged, newest first; searching begins with the first page."""
    store = knowing(*(f"Fact number{n}" for n in range(1_200)))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        asked = [(c.arguments["page"], c.arguments["limit"]) for c in store.called("memories")]
        assert asked == [(1, 200), (1, 500), (2, 500), (3, 500)]
        assert await found(mirror, "number1199") == ["Fact number1199"]
        assert len(mirror) == 1_200


async def test_static_facts_are_held_first_and_then_the_newest() -> None:
    """Issue, point 1: more memories than the bound; the mirror holds the newest and the static ones."""
    store = knowing(*(f"Said lately{n}" for n in range(8)))
    store.stored[TAG] += facts("Is allergic to nuts", static=True, first=100)
    async with opened(store, bounds=Bounds(memories=4)) as mirror:
        await until(lambda: len(store.called("memories")) == 1 and len(mirror) == 4)
        assert await found(mirror, "nuts") == ["Is allergic to nuts"]
        assert await found(mirror, "lately2") == ["Said lately2"]
        assert await found(mirror, "lately3") == []
        assert mirror.ready
        assert not mirror.complete


async def test_the_text_of_memories_is_bounded_in_bytes() -> None:
    """Issue, point 1: bounded in count and bytes."""
    store = knowing("tea " * 20, "ärger " * 20)
    async with opened(store, bounds=Bounds(memory_bytes=100)) as mirror:
        await mirror.wait_until_ready(10)
        assert len(mirror) == 1
        assert not mirror.complete


async def test_a_service_that_never_turns_the_page_is_not_asked_for_ever() -> None:
    """Robustness: the list ends when a page brings nothing new; whether there is more is then unknown."""
    store = ScriptedStore()
    page = MemoryPage(entries=tuple(facts(TEA)), more=True)
    store.always("memories", Answer(page))
    async with opened(store) as mirror:
        await settled(store, "memories", 3)
        assert mirror.ready
        assert len(store.called("memories")) == 3
        assert await found(mirror, "tea") == [TEA]
        assert not mirror.complete


@pytest.mark.parametrize("error", [AccessDenied("403"), PaymentRequired("402"), RequestRejected("400")])
async def test_a_list_that_is_refused_is_said_once_and_not_asked_for_again(
    error: ServiceError, caplog: pytest.LogCaptureFixture, clock: VirtualClock
) -> None:
    """Issue, point 1: a service or key that refuses the list."""
    store = ScriptedStore().always("memories", Fail(error)).always("latest_calls", Fail(error))
    async with opened(store) as mirror:
        await until(lambda: mirror.unavailable)
        for _ in range(5):
            mirror.refresh()
            await asyncio.sleep(REFRESH_INTERVAL)
        assert len(store.called("memories")) == 1
        assert not mirror.ready
        assert not mirror.complete
        assert await found(mirror, "anything") == []
    said = [r for r in caplog.records if "cannot be listed" in r.getMessage()]
    assert [r.levelno for r in said] == [logging.WARNING]


async def test_a_client_that_can_list_nothing_gives_no_mirror(caplog: pytest.LogCaptureFixture) -> None:
    """The seam: `NotImplementedError`. Nothing is wrong with such a client, so it is no warning."""
    caplog.set_level(logging.INFO)
    async with opened(ScriptedStore(lists=False)) as mirror:
        await until(lambda: mirror.unavailable)
    assert [r.levelno for r in caplog.records if "listed" in r.getMessage()] == [logging.INFO]


async def test_an_outage_at_the_start_is_waited_out(
    caplog: pytest.LogCaptureFixture, clock: VirtualClock
) -> None:
    """Issue, point 1: in the background; one warning per outage (design 6)."""
    caplog.set_level(logging.INFO)
    store = knowing(TEA)
    store.script(
        "memories", Fail(ServiceUnavailable("503")), Hang(), Fail(RateLimited("429", retry_after=25))
    )
    async with opened(store) as mirror:
        await until(lambda: mirror.complete, 100)
        assert 40 < clock.elapsed < 60
        assert await found(mirror, "tea") == [TEA]
    assert [r.levelno for r in caplog.records if "Loading the caller's memory ahead" in r.getMessage()] == [
        logging.WARNING,
        logging.INFO,
    ]


async def test_a_caller_nobody_knows_yet_is_mirrored_although_the_list_answers_404() -> None:
    """Reference 1.5: services answer 404 for a tag that nothing was stored under."""
    store = ScriptedStore().always("memories", Fail(NotFound("404", status=404)))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        mirror.remembered(TEA)
        assert await found(mirror, "tea") == [TEA]


async def test_a_service_without_the_route_gives_no_mirror_of_a_known_caller() -> None:
    """Issue, point 1: go on without a mirror, rather than with an empty one."""
    store = ScriptedStore().always("memories", Fail(NotFound("404", status=404)))
    store.profiles[TAG] = Profile(static=(TEA,))
    async with opened(store) as mirror:
        await until(lambda: mirror.unavailable)
        assert not mirror.ready


# -- the text of calls


async def test_the_text_of_a_call_is_found_before_it_becomes_memories() -> None:
    """Issue, point 1: the text of their latest calls that the service has not turned into memories yet."""
    store = ScriptedStore()
    text = (
        "[2026-11-29T10:00:00.000Z] Caller: I ordered a blue kayak.\n[2026-11-29T10:00:02.000Z] Agent: Noted."
    )
    store.script("latest_calls", Answer([call(text)]))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        (hit,) = await mirror.search("which kayak", limit=5, threshold=0.1)
        assert (hit.text, hit.memory_id) == (text, None)
        assert hit.updated_at is not None
        assert hit.updated_at.isoformat() == "2026-11-29T10:00:00+00:00"


async def test_a_remembered_fact_that_became_a_memory_is_not_held_as_text() -> None:
    """Specification, `forget`: its memory may have been forgotten; the note that stored it must not bring it back."""
    store = ScriptedStore()
    notes = [call(TEA, custom_id=None, processed=True), call(DOG, custom_id=None, id="d2")]
    store.script("latest_calls", Answer(notes))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        assert await found(mirror, "green tea and dog") == [DOG]


async def test_what_this_call_stores_is_not_held_twice() -> None:
    """Issue, point 1: after a reconnect the earlier part is here; the later one was heard."""
    before, after = "[2026-11-29T16:00:00.000Z] Caller: kayak", "[2026-11-29T17:00:01.000Z] Caller: canoe"
    store = ScriptedStore().script("latest_calls", Answer([call(f"{before}\n{after}", custom_id="lk-now")]))
    async with opened(store, document_id="lk-now") as mirror:
        await until(lambda: mirror.complete)
        assert await found(mirror, "kayak canoe") == [before]


async def test_calls_that_are_no_memories_yet_come_first_and_long_ones_with_their_end() -> None:
    """Issue, point 1: bounded."""
    done = "\n".join(f"[2026-11-29T10:{n:02}:00.000Z] Caller: processed{n}" for n in range(20))
    new = "\n".join(f"[2026-11-28T10:{n:02}:00.000Z] Caller: waiting{n}" for n in range(20))
    store = ScriptedStore()
    store.script("latest_calls", Answer([call(done, processed=True), call(new, id="d2", custom_id="lk-2")]))
    async with opened(store, bounds=Bounds(passages=5)) as mirror:
        await mirror.wait_until_ready(10)
        await until(lambda: len(mirror) == 5)
        assert await found(mirror, "waiting19")
        assert not await found(mirror, "waiting1")
        assert not await found(mirror, "processed19")
        assert not mirror.complete


async def test_without_the_text_of_calls_the_mirror_is_not_called_complete() -> None:
    """Issue, point 1: the service's own search adds the rest."""
    store = knowing(TEA).always("latest_calls", Fail(AccessDenied("403")))
    async with opened(store) as mirror:
        await mirror.wait_until_ready(10)
        await settled(store, "latest_calls", 1)
        assert await found(mirror, "tea") == [TEA]
        assert not mirror.complete


# -- read your own writes


async def test_a_remembered_fact_is_found_at_once_also_while_the_service_hangs() -> None:
    """Issue, point 1: what is remembered in this call shows in the mirror at once."""
    store = (
        ScriptedStore().always("memories", Hang(deaf=True)).script("profile", Answer(Profile(dynamic=(DOG,))))
    )
    async with opened(store) as mirror:
        await until(lambda: mirror.profile is not None)
        mirror.remembered(TEA, "doc-1")
        assert await found(mirror, "what tea") == [TEA]
        assert mirror.profile == Profile(dynamic=(TEA, DOG))


@pytest.mark.parametrize("listed", ["likes  green tea.", "The caller prefers green tea"])
async def test_a_remembered_fact_gives_way_to_the_memory_that_was_made_of_it(
    listed: str, clock: VirtualClock
) -> None:
    """Issue, point 1: after that it is refreshed. The same words, or the document that the receipt names."""
    store = ScriptedStore()
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        mirror.remembered(TEA, "doc-1")
        store.stored[TAG] = [StoredMemory("m1", listed, updated_at=NOW, documents=("doc-1",))]
        await settled(store, "memories", 2)
        await until(lambda: len(mirror) == 1)
        (hit,) = await mirror.search("green tea", limit=5, threshold=0.1)
        assert (hit.text, hit.memory_id) == (listed, "m1")
        assert mirror.profile == Profile()


async def test_a_fact_remembered_again_is_one_hit_that_can_be_forgotten() -> None:
    """Case T1: what can be forgotten shows its id."""
    async with opened(knowing(TEA)) as mirror:
        await until(lambda: mirror.complete)
        mirror.remembered("likes green tea.")
        (hit,) = await mirror.search("green tea", limit=5, threshold=0.1)
        assert hit.memory_id == "m0"


@pytest.mark.parametrize("by", [{"memory_id": "m0"}, {"text": "likes green tea."}])
async def test_a_forgotten_fact_is_gone_at_once_and_no_refresh_brings_it_back(
    by: dict[str, str], clock: VirtualClock
) -> None:
    """Issue, point 1. The answer of a refresh that started before still holds the fact."""
    store = knowing(TEA, DOG)
    store.profiles[TAG] = Profile(static=(DOG,), dynamic=("[2026-11-29] Likes green tea.",))
    store.script("profile", Work(), Work(after=5)).script("memories", Work(), Work(after=5))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        mirror.refresh()
        await until(lambda: len(store.called("memories")) == 2, 100)
        mirror.forgotten(**by)
        assert await found(mirror, "green tea dog") == [DOG]
        assert mirror.profile == Profile(static=(DOG,))
        await settled(store, "memories", 2)
        assert await found(mirror, "green tea dog") == [DOG]
        assert mirror.profile == Profile(static=(DOG,))


async def test_a_fact_forgotten_by_mistake_can_be_remembered_again(clock: VirtualClock) -> None:
    """Specification: remember stores a fact, whatever was before."""
    store = knowing(TEA)
    store.profiles[TAG] = Profile(static=(TEA,))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        mirror.forgotten(memory_id="m0")
        assert mirror.profile == Profile()
        mirror.remembered(TEA)
        assert await found(mirror, "tea") == [TEA]
        assert mirror.profile == Profile(static=(TEA,))
        store.stored[TAG] = facts(TEA, first=5)
        await settled(store, "memories", 2)
        (hit,) = await mirror.search("tea", limit=5, threshold=0.1)
        assert hit.memory_id == "m5"


async def test_when_it_is_not_known_what_was_forgotten_the_whole_list_is_read_again(
    clock: VirtualClock,
) -> None:
    """Issue, point 1: forgotten shows in the mirror, also after an unclear end (tools: uncertain)."""
    known = facts(*(f"Fact number{n}" for n in range(100)))
    store = ScriptedStore().always("memories", Answer(MemoryPage(tuple(known))))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        store.always("memories", Answer(MemoryPage(tuple(known[:50] + known[51:]))))
        mirror.refresh()
        await settled(store, "memories", 2)
        assert len(mirror) == 100, "no total is told, so that a refresh cannot know"
        mirror.forgotten()
        await until(lambda: len(mirror) == 99, 100)
        assert await found(mirror, "number50") == []


async def test_when_everything_on_the_first_page_is_new_the_whole_list_is_read(clock: VirtualClock) -> None:
    """Brief of the mirror: pages until known unchanged ids."""
    old, new = (
        facts(*(f"Fact number{n}" for n in range(60))),
        facts(*(f"New{n}" for n in range(60)), first=100),
    )
    store = ScriptedStore().always("memories", Answer(MemoryPage(tuple(old))))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        store.always("memories", None)
        store.script("memories", Answer(MemoryPage(tuple(new[:50]), more=True)))
        store.stored[TAG] = new + old
        mirror.refresh()
        await until(lambda: len(mirror) == 120, 100)


async def test_earlier_turns_of_this_call_are_found_but_not_the_question_itself() -> None:
    """Issue, point 1: what is captured in this call. The last turns are in the model's context anyway."""
    async with opened(ScriptedStore()) as mirror:
        await until(lambda: mirror.complete)
        mirror.heard("caller", "I ordered a blue kayak")
        for n in range(50):
            mirror.heard("agent" if n % 2 else "caller", f"small talk{n}")
        mirror.heard("caller", "which kayak did I order")
        (text,) = await found(mirror, "which kayak did I order")
        assert "] Caller: I ordered a blue kayak\n" in text
        assert await found(mirror, "talk49 talk48 talk47 talk46 talk45") == []


async def test_a_very_long_call_keeps_its_end() -> None:
    """Issue: at most 10 MB a call."""
    async with opened(ScriptedStore(), bounds=Bounds(passages=10)) as mirror:
        await until(lambda: mirror.complete)
        for n in range(400):
            mirror.heard("caller", f"turn{n}")
        mirror.heard("caller", "word " * 3_000)
        assert len(mirror) <= 10
        assert await found(mirror, "turn390")
        assert not await found(mirror, "turn1")


async def test_neighbouring_turns_that_are_found_are_one_hit_in_the_order_in_which_they_were_said() -> None:
    """Issue: the same retrieval as the embedded service's, whose hits are stretches of a call."""
    store = ScriptedStore()
    lines = [
        "[2026-11-01T10:00:00.000Z] Agent: Which instrument does your sister play?",
        "[2026-11-01T10:00:05.000Z] Caller: My sister plays the viola in an orchestra.",
        "[2026-11-01T10:00:09.000Z] Agent: How nice.",
        "[2026-11-01T10:01:00.000Z] Caller: I have to change my appointment.",
    ]
    await store.append(TAG, "lk-1", "\n".join(lines), dreaming="instant", at=NOW, timeout=1)
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        hits = await mirror.search("Which instrument does my sister play?", limit=5, threshold=0.1)
    assert "\n".join(lines[:2]) in hits[0].text
    assert sum("viola" in hit.text for hit in hits) == 1


async def test_a_turn_of_this_call_that_is_taken_back_is_not_found() -> None:
    """Issue: a turn that only manages memory must not bring the fact back, however long ago it was."""
    async with opened(ScriptedStore()) as mirror:
        await until(lambda: mirror.complete)
        for n in range(20):
            mirror.heard("caller", f"turn{n}", NOW + timedelta(seconds=n))
        assert await found(mirror, "turn3")
        mirror.unheard([NOW + timedelta(seconds=3)])
        assert not await found(mirror, "turn3")
        assert await found(mirror, "turn4")


# -- refreshing


async def test_refreshes_are_rare_and_never_lost(clock: VirtualClock) -> None:
    """Brief of the mirror: not more often than every 20 s; what is asked for in between comes when it is due."""
    store = knowing(TEA)
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        for _ in range(10):
            mirror.refresh()
            await asyncio.sleep(1)
        assert len(store.called("memories")) == 1
        await settled(store, "memories", 2)
        assert clock.elapsed == pytest.approx(REFRESH_INTERVAL, abs=0.5)
        await asyncio.sleep(200)
        assert len(store.called("memories")) == 2


async def test_a_refresh_reads_one_short_page_and_takes_what_changed(clock: VirtualClock) -> None:
    """Brief of the mirror: incremental; only pages until known unchanged ids."""
    store = knowing(*(f"Fact number{n}" for n in range(300)))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        whole = len(store.called("memories"))
        entries = store.stored[TAG]
        entries[0] = StoredMemory("m0", "Fact number0 revised", updated_at=NOW)
        entries.insert(0, StoredMemory("new", "Plays chess", updated_at=NOW))
        listed = tuple(entry for entry in entries[:50] if entry.id not in ("m7", "m8"))
        page = MemoryPage(listed, gone=("m7",), replaced=("m8",), more=True, total=300)
        store.script("memories", Answer(page))
        mirror.refresh()
        await until(lambda: len(mirror) == 299, 100)
        (asked,) = store.called("memories")[whole:]
        assert (asked.arguments["page"], asked.arguments["limit"]) == (1, 50)
        assert await found(mirror, "chess") == ["Plays chess"]
        assert await found(mirror, "number0") == ["Fact number0 revised"]
        assert await found(mirror, "number7 number8") == []


async def test_a_list_of_another_length_than_expected_is_read_whole(clock: VirtualClock) -> None:
    """Robustness: a service may drop memories without showing them as forgotten."""
    store = knowing(*(f"Fact number{n}" for n in range(300)))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        del store.stored[TAG][250]
        mirror.refresh()
        await until(lambda: len(mirror) == 299, 100)
        assert await found(mirror, "number250") == []


async def test_a_refresh_that_fails_leaves_what_is_here(clock: VirtualClock) -> None:
    """Issue, point 4: a service that hangs after preload adds nothing, and takes nothing."""
    store = knowing(TEA)
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        store.always("memories", Hang()).always("profile", Fail(ServiceUnavailable("503")))
        mirror.refresh()
        await settled(store, "memories", 2)
        assert await found(mirror, "tea") == [TEA]
        store.always("memories", None).always("profile", None)
        store.stored[TAG] += facts(DOG, first=9)
        mirror.refresh()
        await until(lambda: len(mirror) == 2, 100)


async def test_the_text_of_calls_is_not_read_at_each_refresh(clock: VirtualClock) -> None:
    """Brief of the mirror: it is long and does not change; what is said in this call is heard."""
    store = knowing(TEA)
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        for _ in range(10):
            mirror.refresh()
            await asyncio.sleep(REFRESH_INTERVAL)
        assert len(store.called("memories")) > 9
        assert len(store.called("latest_calls")) == 1


async def test_a_call_that_was_deleted_is_no_longer_found(clock: VirtualClock) -> None:
    """Issue, point 1: refreshed in the background, the text of calls too."""
    store = ScriptedStore().script("latest_calls", Answer([call("[2026-11-29T10:00:00.000Z] Caller: kayak")]))
    async with opened(store) as mirror:
        await until(lambda: mirror.complete)
        assert await found(mirror, "kayak")
        await asyncio.sleep(CALLS_INTERVAL)
        mirror.refresh()
        await settled(store, "latest_calls", 2)
        assert await found(mirror, "kayak") == []


async def test_a_memory_that_expires_during_the_call_is_not_shown() -> None:
    """Reference 1.5, `forgetAfter`."""
    store = ScriptedStore()
    store.stored[TAG] = [StoredMemory("m1", TEA, expires_at=NOW + timedelta(minutes=5))]
    time = [NOW]
    async with opened(store, now=lambda: time[0]) as mirror:
        await until(lambda: mirror.complete)
        assert await found(mirror, "tea") == [TEA]
        time[0] += timedelta(minutes=6)
        assert await found(mirror, "tea") == []


# -- the end


async def test_a_closed_mirror_holds_nothing_and_drops_what_comes_late(clock: VirtualClock) -> None:
    """Issue, point 1: it lives in memory only, belongs to one tag, and is gone on rebind."""

    class Stubborn(ScriptedStore):
        """Answers although it was cancelled, as a client may."""

        async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
            return MemoryPage(tuple(facts(TEA)))

    store = Stubborn()
    store.profiles[TAG] = Profile(static=(DOG,))
    async with opened(store) as mirror:
        await until(lambda: mirror.profile is not None)
        mirror.remembered(TEA)
        mirror.close()
        await asyncio.sleep(10)
        mirror.remembered(TEA)
        mirror.heard("caller", TEA)
        mirror.forgotten(text=TEA)
        mirror.refresh()
        assert len(mirror) == 0
        assert mirror.profile is None
        assert not mirror.ready
        assert await found(mirror, "tea dog") == []


async def test_a_search_that_runs_while_the_mirror_closes_ends_with_nothing() -> None:
    """Design 4.2: a rebind does not cancel the reply that waits."""
    entered, let_go = threading.Event(), threading.Event()

    class Slow(WordModel):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if "slowly" in texts:
                entered.set()
                assert let_go.wait(10)
            return super().embed(texts)

    async with opened(knowing(TEA), load_embedder=Slow) as mirror:
        await until(lambda: mirror.semantic and mirror.complete)
        running = [asyncio.ensure_future(found(mirror, query)) for query in ("slowly", "tea")]
        await until(entered.is_set)
        mirror.close()
        let_go.set()
        assert await asyncio.gather(*running) == [[], []]


async def test_closing_twice_and_closing_before_the_start_are_harmless() -> None:
    """Style 8: drained on close."""
    mirror = Mirror(knowing(TEA), TAG, load_embedder=lambda: None)
    mirror.close()
    mirror.start()
    await mirror.aclose()
    await mirror.aclose()
    assert not mirror.ready


# -- meaning


async def test_words_alone_are_searched_until_the_model_is_there() -> None:
    """Issue, point 1: full text at once. The loop that carries the call never waits for the model."""
    let_go = threading.Event()
    threads: set[str] = set()

    class Model(WordModel):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            threads.add(threading.current_thread().name)
            return super().embed(texts)

    def load() -> WordModel:
        threads.add(threading.current_thread().name)
        assert let_go.wait(10)
        return Model()

    async with opened(knowing(DOG, TEA), load_embedder=load) as mirror:
        try:
            await until(lambda: mirror.complete)
            assert not mirror.semantic
            assert await found(mirror, "dog") == [DOG]
            assert await found(mirror, "hound") == []
        finally:
            let_go.set()
        await until(lambda: mirror.semantic)
        assert await found(mirror, "hound called Rex", limit=1) == [DOG]
        mirror.remembered("My dwelling is blue")
        await until(lambda: mirror.semantic)
        assert (await found(mirror, "home blue", limit=1)) == ["My dwelling is blue"]
    assert threading.main_thread().name not in threads


async def test_a_model_that_breaks_costs_meaning_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """Design 6: the developer sees it, the caller does not."""

    def load() -> WordModel:
        raise RuntimeError(TEA)

    async with opened(knowing(TEA), load_embedder=load) as mirror:
        await until(lambda: mirror.complete and "cannot be used" in caplog.text)
        assert await found(mirror, "tea") == [TEA]
        assert not mirror.semantic
    assert_private(caplog, [TEA])


class Dictionary:
    """A cache in memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], NDArray[np.float32]] = {}

    def get(self, model_id: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return {text: self.held[model_id, text] for text in texts if (model_id, text) in self.held}

    def put(self, model_id: str, vectors: dict[str, NDArray[np.float32]]) -> None:
        self.held.update({(model_id, text): vector for text, vector in vectors.items()})


async def test_texts_of_an_earlier_call_are_not_embedded_again() -> None:
    """Issue, point 1: embeddings of unchanged texts are cached between calls."""
    cache, models = Dictionary(), [WordModel(), WordModel()]
    for model in models:
        async with opened(knowing(TEA, DOG), load_embedder=lambda: model, cache=cache) as mirror:  # noqa: B023
            await until(lambda: mirror.semantic and mirror.complete)
            assert await found(mirror, "hound called Rex", limit=1) == [DOG]
    assert sorted(models[0].embedded) == sorted([TEA, DOG, "hound called Rex"])
    assert models[1].embedded == ["hound called Rex"]


async def test_a_vector_of_another_length_in_the_cache_is_not_used() -> None:
    """Robustness: a damaged cache costs time and nothing else."""
    cache = Dictionary()
    cache.held["words-1", DOG] = np.ones(3, dtype=np.float32)
    async with opened(knowing(DOG), load_embedder=WordModel, cache=cache) as mirror:
        await until(lambda: mirror.semantic and mirror.complete)
        assert await found(mirror, "hound called Rex") == [DOG]


async def test_nothing_of_a_caller_is_logged(caplog: pytest.LogCaptureFixture, clock: VirtualClock) -> None:
    """Case P2, at DEBUG, with everything that can happen to a mirror."""
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    store = knowing(TEA)
    store.script("latest_calls", Answer([call("Caller: kayak zanzibar")]))
    store.script("memories", Fail(ServiceUnavailable("503")), Work(), Fail(ValueError(TEA)))
    async with opened(store, load_embedder=WordModel) as mirror:
        await until(lambda: mirror.complete, 100)
        mirror.remembered("likes zanzibar")
        mirror.heard("caller", "zanzibar")
        mirror.forgotten(memory_id="m0")
        await found(mirror, "zanzibar")
        await settled(store, "memories", 3)
    assert caplog.records
    assert_private(caplog, ["zanzibar", "green tea", TAG], logger="supermemory_livekit")
    assert_private(caplog, ["zanzibar", "green tea", TAG], logger="asyncio")
