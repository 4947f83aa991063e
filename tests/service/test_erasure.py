"""A caller is erased while they are on the line: over the official SDK, a wire that can fail, and a real file."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import ConfigurationError, SupermemoryLiveKit
from supermemory_livekit.admin.export import export_caller
from supermemory_livekit.erasure.erasure import erase_everywhere
from supermemory_livekit.scope import TAG_ATTRIBUTE
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.testing import Hang, Respond, ScriptedCaller, ScriptedRealtimeModel, Work
from tests.support.clock import VirtualClock
from tests.support.jobs import job
from tests.support.privacy import assert_private
from tests.support.rooms import Person
from tests.support.sessions import say, started

from .conftest import LOGGERS, SECRETS
from .world import World, agent_over, echo

ANA, BO = "ana-zanzibar", "bo-zanzibar"
DELETE_TAG = "DELETE /v3/container-tags/*"
WRITE = "POST /v3/documents"


def store_of(world: World) -> SDKStore:
    return SDKStore(world.client(), owns_client=False)


async def known(world: World, tag: str, spool: Path | None = None) -> list[dict[str, Any]]:
    """Everything that anybody can find out about a caller, once the service's own work is done."""
    await world.settled()
    store = store_of(world)
    records = [record async for record in export_caller(store, tag, spool_dir=spool)]
    hits = await store.search(tag, "zanzibar", limit=100, threshold=0.0, mode="hybrid", timeout=5)
    return [*records, *({"kind": "hit", "text": hit.text} for hit in hits)]


async def written(memory: SupermemoryLiveKit) -> None:
    await asyncio.sleep(1)
    assert memory.stats.turns_unwritten == 0


async def test_a_live_call_is_erased_and_does_not_write_the_caller_back(
    clock: VirtualClock, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue: after `erase`, search, profile, export and the spool are empty, also when the call was live, also after
    the service's background work has run. Another caller keeps everything."""
    spool = tmp_path / "spool"
    await world.knows(ANA, "Likes zanzibar tea.")
    await world.knows(BO, "Likes zanzibar coffee.")
    memory = world.memory(ANA, spool_dir=spool)
    context = ChatContext()
    assert await memory.preload(context)
    model = echo()
    async with started(agent_over(memory, chat_ctx=context), llm=model) as session:
        memory.attach(session)
        await say(session, "I moved to zanzibar.")
        assert "zanzibar tea" in model.last.text
        assert (await memory.remember("Has a zanzibar parrot.")).startswith("Saved")
        await written(memory)
        kinds = {record["kind"] for record in await known(world, ANA)}
        assert kinds == {"profile", "memory", "document", "hit"}
        world.fail(Respond(503), WRITE)
        await say(session, "My dog is called zanzibar.")
        world.work()
        done = await memory.erase()
        assert done.clean, done
        assert (done.documents, done.problems) == (2, ())
        assert done.memories >= 3
        assert done.turns == 2
        assert await known(world, ANA, spool) == []
        asked = len(world.wire.requests)
        assert await say(session, "And zanzibar is my favourite island.") == (
            "You said And zanzibar is my favourite island."
        )
        assert "zanzibar tea" not in model.last.text
        assert "NOT saved" in await memory.remember("Likes zanzibar cake.")
        await asyncio.sleep(60)
    await memory.aclose()
    assert len(world.wire.requests) == asked, "nothing is even asked for"
    assert await known(world, ANA, spool) == []
    assert SpoolDirectory(spool).files() == []
    assert memory.stats.turns_captured == 6
    assert (memory.stats.turns_written, memory.stats.turns_dropped, memory.stats.turns_unwritten) == (2, 4, 0)
    assert {record["kind"] for record in await known(world, BO)} == {"profile", "memory", "hit"}
    assert world.wire.sent(DELETE_TAG)
    for name in LOGGERS:
        assert_private(caplog, SECRETS, logger=name)


async def test_a_write_under_way_lands_before_the_erasure_and_not_after(
    clock: VirtualClock, world: World
) -> None:
    """Issue: an in-flight write at the moment of erase must not land after it."""
    memory = world.memory(ANA)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        world.fail(Work(after=4.0), WRITE)
        await say(session, "I moved to zanzibar.")
        remembering = asyncio.ensure_future(memory.remember("Has a zanzibar parrot."))
        await asyncio.sleep(1)
        assert memory.stats.turns_unwritten == 2
        done = await memory.erase()
        await remembering
    await memory.aclose()
    assert done.clean
    assert done.documents == 2
    assert await known(world, ANA) == []


async def test_a_write_that_ended_without_an_answer_is_waited_out(clock: VirtualClock, world: World) -> None:
    """Decision 0017: a service may carry out late what nobody waits for any more."""
    memory = world.memory(ANA)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        world.fail(Hang(committed=True), WRITE)
        await say(session, "I moved to zanzibar.")
        await asyncio.sleep(1)
        begun = clock.elapsed
        done = await memory.erase()
        assert clock.elapsed - begun > 15, "the quiet time is the long one"
        world.work()
    await memory.aclose()
    assert done.clean
    assert done.documents == 1
    assert await known(world, ANA) == []


async def test_a_key_that_may_not_delete_tags_deletes_one_by_one(clock: VirtualClock, world: World) -> None:
    """Reference 1.7: only owners and admins may delete a container tag."""
    await world.knows(ANA, *(f"Likes zanzibar tea number {number}." for number in range(12)))
    world.fail(Respond(403, {"error": "Forbidden"}), DELETE_TAG)
    memory = world.memory(ANA)
    await memory.remember("Has a zanzibar parrot.")
    await world.settled()
    done = await memory.erase()
    await memory.aclose()
    assert (done.documents, done.memories, done.left_documents, done.left_memories) == (1, 13, 0, 0)
    # Facts without a document are forgotten, and this service keeps a mark of what was forgotten.
    assert done.left_marks == 12
    assert not done.clean
    assert done.problems == ("deleting the container tag: delete_tag answered 403",)
    left = await known(world, ANA)
    assert [record["forgotten"] for record in left] == [True] * 12


async def test_a_service_that_is_down_is_told_of_and_nothing_is_raised(
    clock: VirtualClock, world: World
) -> None:
    """Design 6: a failing service never raises into a call."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA)
    world.fail(Respond(503, {"error": "down"}), "*", "DELETE *")
    done = await memory.erase(timeout=5)
    assert not done.clean
    assert done.unread == ("documents", "memories", "profile", "search")
    world.work()
    assert (await memory.erase()).clean
    await memory.aclose()
    assert await known(world, ANA) == []


async def test_a_caller_who_hangs_up_is_erased_all_the_same(clock: VirtualClock, world: World) -> None:
    """Decision 0017: the end of the call cancels the tool that asked, and waits for the erasure."""
    memory = world.memory(ANA)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        world.fail(Work(after=3.0), WRITE)
        await say(session, "I moved to zanzibar.")
        await asyncio.sleep(0.5)
        tool = asyncio.ensure_future(memory.erase())
        await asyncio.sleep(0.5)
        tool.cancel()
    begun = clock.elapsed
    await memory.aclose()
    assert clock.elapsed - begun < 8
    assert tool.cancelled()
    assert await known(world, ANA) == []


async def test_the_next_call_of_an_erased_caller_begins_anew(clock: VirtualClock, world: World) -> None:
    """Decision 0017: the erasure covers this call; the caller may ring again."""
    memory = world.memory(ANA)
    assert (await memory.erase()).clean
    memory.bind(container_tag=BO)
    assert (await memory.remember("Likes zanzibar coffee.")).startswith("Saved")
    memory.bind(container_tag=ANA)
    assert "NOT saved" in await memory.remember("Likes zanzibar tea.")
    await memory.aclose()
    again = world.memory(ANA, "room-2")
    assert (await again.remember("Likes zanzibar tea.")).startswith("Saved")
    await again.aclose()
    assert {record["kind"] for record in await known(world, ANA)} >= {"memory", "document"}
    assert await known(world, BO) != []


async def test_a_call_notices_that_its_caller_was_erased_elsewhere(
    clock: VirtualClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue: a running call does not write the caller back at its end, whoever erased it. Here the machines share
    nothing but the service: the call's document had to be made anew, and nothing else is known of the caller."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "I moved to zanzibar.")
        await written(memory)
        assert (await erase_everywhere(store_of(world), ANA, spool_dir=None, timeout=30)).clean
        await say(session, "My dog is called zanzibar.")
        await asyncio.sleep(1)
        await say(session, "Good bye from zanzibar.")
    await memory.aclose()
    assert await known(world, ANA) == []
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum("erased elsewhere" in message for message in warnings) == 1


async def test_a_call_that_has_written_nothing_yet_sees_the_mark(
    clock: VirtualClock, world: World, tmp_path: Path
) -> None:
    """Decision 0017: processes that share a spool directory leave each other word, and show nothing more either."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA, spool_dir=tmp_path)
    model = echo()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        world.fail(Respond(503), WRITE)
        await say(session, "I moved to zanzibar.")
        assert "zanzibar tea" in model.last.text
        world.work()
        erasing = asyncio.ensure_future(
            erase_everywhere(store_of(world), ANA, spool_dir=tmp_path, timeout=30)
        )
        await asyncio.sleep(0.5)
        await say(session, "My dog is called zanzibar.")
        assert "zanzibar tea" not in model.last.text
        done = await erasing
        assert done.clean, done
    await memory.aclose()
    assert await known(world, ANA, tmp_path) == []
    assert SpoolDirectory(tmp_path).files() == []


async def test_a_document_that_vanished_alone_is_written_anew(clock: VirtualClock, world: World) -> None:
    """Decision 0017: one deleted call is no erasure; what is said after it is kept."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "I moved to zanzibar.")
        await written(memory)
        store = store_of(world)
        page = await store.list_documents(ANA, page=1, limit=10, contents=False, timeout=5)
        await store.delete_documents(ANA, [one.id for one in page.entries], timeout=5)
        await say(session, "My dog is called zanzibar.")
        await written(memory)
    await memory.aclose()
    assert "Caller: My dog is called zanzibar." in await world.transcript(ANA)


async def test_an_erasure_holds_for_the_tag_that_the_same_person_gets_later(
    clock: VirtualClock, world: World, tmp_path: Path
) -> None:
    """Decision 0017: the attribute may arrive late; it names the person who was erased."""
    ana = Person("ana-identity-zanzibar")
    with job() as running:
        memory = world.memory(None, spool_dir=tmp_path)
        memory.bind(participant=ana)
        async with started(agent_over(memory), llm=echo()) as session:
            memory.attach(session)
            await say(session, "I moved to zanzibar.")
            assert (await memory.erase()).clean
            ana.attributes[TAG_ATTRIBUTE] = ANA
            running.context.room.emit("participant_attributes_changed", {TAG_ATTRIBUTE: ANA}, ana)
            assert memory.container_tag == ANA
            await say(session, "My dog is called zanzibar.")
            assert "NOT saved" in await memory.remember("Likes zanzibar cake.")
        await memory.aclose()
    assert await known(world, ANA, tmp_path) == []
    assert await known(world, ana.identity, tmp_path) == []
    assert SpoolDirectory(tmp_path).files() == []


async def test_an_erasure_covers_the_tags_that_the_same_person_had_before(
    clock: VirtualClock, world: World
) -> None:
    """Decision 0017: what was stored under the identity, until the attribute arrived, is the same person's."""
    ana = Person("ana-identity-zanzibar")
    with job() as running:
        memory = world.memory(None)
        memory.bind(participant=ana)
        async with started(agent_over(memory), llm=echo()) as session:
            memory.attach(session)
            await say(session, "I moved to zanzibar.")
            await written(memory)
            ana.attributes[TAG_ATTRIBUTE] = ANA
            running.context.room.emit("participant_attributes_changed", {TAG_ATTRIBUTE: ANA}, ana)
            await say(session, "My dog is called zanzibar.")
            await written(memory)
            assert await known(world, ana.identity) != []
            done = await memory.erase()
        await memory.aclose()
    assert done.clean, done
    assert done.documents == 2
    assert await known(world, ana.identity) == []
    assert await known(world, ANA) == []


async def test_an_erasure_covers_a_person_who_comes_back_to_the_line(
    clock: VirtualClock, world: World
) -> None:
    """Decision 0017: somebody else on the line in between is not covered, and changes nothing for who comes back."""
    ana, bo = Person("ana-identity-zanzibar"), Person(BO)
    memory = world.memory(None)
    memory.bind(participant=ana)
    assert (await memory.remember("Has a zanzibar parrot.")).startswith("Saved")
    ana.attributes[TAG_ATTRIBUTE] = ANA
    memory.bind(participant=ana)
    memory.bind(participant=bo)
    assert (await memory.remember("Likes zanzibar coffee.")).startswith("Saved")
    memory.bind(participant=ana)
    assert (await memory.erase()).clean
    await memory.aclose()
    assert await known(world, ana.identity) == []
    assert await known(world, BO) != []


async def test_an_erasure_does_not_cover_another_caller_of_the_same_phone(
    clock: VirtualClock, world: World
) -> None:
    """Decision 0017: who is named by one tag after another is two people, whatever the line; nobody may erase another
    one's memory."""
    await world.knows(BO, "Likes zanzibar coffee.")
    shared = Person("phone-zanzibar", {TAG_ATTRIBUTE: BO})
    memory = world.memory(None)
    memory.bind(participant=shared)
    shared.attributes[TAG_ATTRIBUTE] = ANA
    memory.bind(participant=shared)
    assert (await memory.remember("Likes zanzibar tea.")).startswith("Saved")
    assert (await memory.erase()).clean
    await memory.aclose()
    assert await known(world, ANA) == []
    assert await known(world, BO) != []


@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_a_realtime_model_that_fails_does_not_keep_anybody_from_being_erased(
    clock: VirtualClock, world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0017: taking memory out of the model's context goes beside the deletion, and is bounded."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA, mirror=False)
    model = ScriptedRealtimeModel("yes")
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("who am I")
        await caller.hears_reply()

        async def broken(context: ChatContext) -> None:
            del context
            if how == "raises":
                raise llm.RealtimeError("update_chat_ctx timed out")
            await asyncio.sleep(3600)

        monkeypatch.setattr(model.sessions[-1], "update_chat_ctx", broken)
        begun = clock.elapsed
        done = await memory.erase()
        assert clock.elapsed - begun < 20
    await memory.aclose()
    assert done.clean, done
    assert await known(world, ANA) == []


@pytest.mark.parametrize("room", [False, True])
async def test_two_memories_of_one_caller_in_one_process_are_both_stopped(
    clock: VirtualClock, world: World, room: bool
) -> None:
    """Decision 0017: without a spool or a cache directory there is no mark; the process itself knows."""
    main = world.memory(None if room else ANA, "room-1")
    if room:
        first = main.for_participant(Person("one", {TAG_ATTRIBUTE: ANA}))
        second = main.for_participant(Person("two", {TAG_ATTRIBUTE: ANA}))
    else:
        first, second = main, world.memory(ANA, "room-2")
    async with (
        started(agent_over(first), llm=echo()) as here,
        started(agent_over(second), llm=echo()) as there,
    ):
        first.attach(here)
        second.attach(there)
        await say(here, "I moved to zanzibar.")
        assert (await first.erase()).clean
        await say(there, "I still love zanzibar.")
        await asyncio.sleep(2)
    await asyncio.gather(main.aclose(), second.aclose())
    assert await known(world, ANA) == []


async def test_a_call_that_begins_during_an_erasure_is_kept(
    clock: VirtualClock, world: World, tmp_path: Path
) -> None:
    """Decision 0017: the next call begins anew, also while the one before is still read back; it is neither deleted
    nor silenced."""
    memory = world.memory(ANA, "room-1", spool_dir=tmp_path)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "I moved to zanzibar.")
        await written(memory)
        erasing = asyncio.ensure_future(memory.erase())
        await asyncio.sleep(1.2)
        assert not erasing.done()
        again = world.memory(ANA, "room-2", spool_dir=tmp_path)
        async with started(agent_over(again), llm=echo()) as next_session:
            again.attach(next_session)
            for number in range(4):
                await say(next_session, f"Here is zanzibar number {number}.")
                await asyncio.sleep(1)
            done = await erasing
            await say(next_session, "Good bye from zanzibar.")
        await again.aclose()
    await memory.aclose()
    assert done.clean, done
    assert done.later == 1
    assert again.stats.turns_dropped == 0
    assert len(await world.transcript(ANA, "room-2")) == 10
    assert await world.transcript(ANA, "room-1") == []


async def test_the_tools_ask_for_nothing_after_an_erasure(clock: VirtualClock, world: World) -> None:
    """Decision 0017: nothing of this call is recalled any more, by the tools neither."""
    memory = world.memory(ANA)
    await memory.erase()
    asked = len(world.wire.requests)
    for answer in (
        await memory.search("zanzibar"),
        await memory.forget(memory_text="Likes zanzibar tea."),
        await memory.remember("Likes zanzibar tea."),
    ):
        assert "was erased" in answer
    assert len(world.wire.requests) == asked
    await memory.aclose()


async def test_erase_needs_a_caller(world: World) -> None:
    """Design 6: wrong set-up raises."""
    memory = world.memory(None)
    with pytest.raises(ConfigurationError, match="bound caller"):
        await memory.erase()
    await memory.aclose()
    logging.getLogger("supermemory_livekit").info("nothing was asked")
