"""A caller rings twice: the product as it is installed, on one file, with the extractor and the encoder it brings.

Runs in real time. Every wait is for an event and bounded.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from supermemory_livekit import InputParams, SupermemoryLiveKit
from supermemory_livekit.local import Engine
from supermemory_livekit.testing import Reply, ScriptedLLM, ToolCall
from tests.support.sessions import say, started

from .world import agent_over, uses

TAG = "ana-zanzibar"
MOVED = "I moved to Zanzibar last week."
CHILD = "My daughter is called Clara Zanzibar."
ASKS_HOME, ASKS_CHILD = "Where did I move to?", "What is my daughter called?"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "SUPERMEMORY_API_KEY",
        "SUPERMEMORY_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "memory.db"


def memory_on(path: Path, session_id: str, **params: Any) -> SupermemoryLiveKit:
    """A new call: a new memory, and a new engine on the same file."""
    params.setdefault("recall_timeout", 30.0)
    return SupermemoryLiveKit(
        base_url=f"local:{path}",
        container_tag=TAG,
        session_id=session_id,
        params=InputParams(**params),
    )


async def settled(path: Path) -> None:
    """All that is due has become memories: what a caller who rings back a minute later meets."""
    engine = Engine(path)
    await engine.start()
    assert await engine.settled(30), "the service is still at work"
    await engine.aclose()


async def written(memory: SupermemoryLiveKit) -> None:
    """All that was said is acknowledged."""

    async def until() -> None:
        while memory.stats.turns_unwritten:  # noqa: ASYNC110 - counters tell nobody that they changed
            await asyncio.sleep(0.01)

    await asyncio.wait_for(until(), 30)


@dataclass
class Heard:
    """What became of one call."""

    model: ScriptedLLM
    memory: SupermemoryLiveKit

    @property
    def block(self) -> str:
        """The memory that the model saw at its last reply, without the conversation."""
        return "\n".join(item.text for item in self.model.last.having(id_prefix="sm_mem_"))

    @property
    def told(self) -> list[str]:
        """What the tools answered."""
        return [item.text for item in self.model.last.items if item.type == "function_call_output"]


async def ring(
    path: Path, session_id: str, *words: str, model: ScriptedLLM | Reply = "I see.", **params: Any
) -> Heard:
    """A whole call, and all that follows from it."""
    memory = memory_on(path, session_id, **params)
    model = model if isinstance(model, ScriptedLLM) else ScriptedLLM(model)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for text in words:
            await say(session, text)
    await memory.aclose()
    await settled(path)
    return Heard(model, memory)


async def remaining(path: Path, question: str) -> str:
    """Everything that the model can learn of the caller: profile, recall and search."""
    profile = await ring(path, "ask-profile", "Hello.", mode="profile", capture="never")
    recall = await ring(path, "ask-full", question, mode="full", capture="never")
    memory = memory_on(path, "ask-tool")
    found = await memory.search(question)
    await memory.aclose()
    return "\n".join((profile.block, recall.block, found))


@pytest.mark.parametrize("mode", ["profile", "query", "full"])
async def test_a_fact_told_in_one_call_is_known_in_the_next(path: Path, mode: str) -> None:
    """Specification: a voice agent can remember a caller across sessions; the table of modes."""
    await ring(path, "first", MOVED, "How is the weather?", CHILD)
    for question, fact in ((ASKS_HOME, "moved to Zanzibar"), (ASKS_CHILD, "Clara Zanzibar")):
        second = await ring(path, "second", question, mode=mode, capture="never")
        assert fact in second.block
    assert ("Known about the caller" in second.block) is (mode != "query")


@pytest.mark.parametrize("dreaming", ["dynamic", "instant"])
async def test_the_raw_words_of_a_call_are_found_as_soon_as_they_are_stored(
    path: Path, dreaming: str
) -> None:
    """Specification: in both modes search_memories finds the raw call text; in this call and in the next."""
    memory = memory_on(path, "first", capture_dreaming=dreaming)
    async with started(agent_over(memory), llm=ScriptedLLM("I see.")) as session:
        memory.attach(session)
        await say(session, "The zanzibar parcel has the number 4812.")
        await written(memory)
        assert "Caller: The zanzibar parcel has the number 4812." in await memory.search("zanzibar parcel")
    await memory.aclose()
    later = memory_on(path, "second")
    assert "Caller: The zanzibar parcel has the number 4812." in await later.search("zanzibar parcel")
    await later.aclose()


async def test_what_is_remembered_is_known_and_what_is_forgotten_is_gone(path: Path) -> None:
    """Specification: remember, recall in a later call, forget by the id from search_memories, gone everywhere."""
    first = await ring(
        path,
        "first",
        "Please keep this in mind.",
        model=uses(ToolCall("remember", {"memory": "Is allergic to zanzibar nuts."})),
    )
    assert first.told == ["Saved. It will be remembered in later calls."]
    known = await remaining(path, "Which allergies do I have?")
    assert known.count("Is allergic to zanzibar nuts.") >= 3

    memory = memory_on(path, "second")
    line = next(line for line in (await memory.search("allergies")).splitlines() if "nuts" in line)
    assert await memory.forget(memory_id=line.partition("id=")[2].split()[0]) == "Forgotten."
    assert "nuts" not in await memory.search("allergies")
    await memory.aclose()
    await settled(path)
    assert "nuts" not in await remaining(path, "Which allergies do I have?")


async def test_a_correction_takes_the_place_of_the_fact(path: Path) -> None:
    """Specification: remember saves an explicit fact, preference or correction; forget takes the old one."""
    await ring(path, "first", "Hi.", model=uses(ToolCall("remember", {"memory": "Lives in old Zanzibar."})))
    await ring(
        path,
        "second",
        "I have moved house.",
        model=uses(
            ToolCall("forget", {"memory_text": "lives in old zanzibar"}),
            ToolCall("remember", {"memory": "Lives in new Zanzibar."}),
        ),
    )
    known = await remaining(path, "Where do I live?")
    assert "Lives in new Zanzibar." in known
    assert "old Zanzibar" not in known


async def test_asking_to_forget_a_spoken_fact_does_not_bring_it_back_as_a_memory(path: Path) -> None:
    """Specification: forget. The words that ask for it name the fact once more, and are kept out of the call's text."""
    await ring(path, "first", CHILD, MOVED)
    second = await ring(
        path,
        "second",
        "Please forget that my daughter is called Clara Zanzibar.",
        model=uses(ToolCall("forget", {"memory_text": CHILD})),
    )
    assert [told.partition(" ")[0] for told in second.told] == ["Forgotten."]
    third = await ring(path, "third", "Hello.", mode="profile", capture="never")
    assert "Clara" not in third.block
    assert "moved to Zanzibar" in third.block
