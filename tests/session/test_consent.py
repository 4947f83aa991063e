"""What is kept out of the memory in a call: without consent, off the record, redacted, and while forgetting."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import InputParams, ServiceUnavailable, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.errors import Conflict, ServiceTimeout
from supermemory_livekit.store import Hit
from supermemory_livekit.testing import Fail, Hang, ScriptedLLM, ScriptedStore, ToolCall, Work
from supermemory_livekit.testing.llm import SeenContext
from tests.support.rooms import hears
from tests.support.sessions import say, started

TAG = "ana"


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**params)
    )


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


def stored(store: ScriptedStore) -> str:
    return store.document(TAG, "lk-room-1") or ""


def everything_sent(store: ScriptedStore) -> str:
    return " ".join(str(call.arguments) for call in store.calls)


def answers(context: ChatContext) -> list[str]:
    """What tools answered since the caller spoke last."""
    said: list[str] = []
    for item in context.items:
        if item.type == "message" and item.role == "user":
            said = []
        elif item.type == "function_call_output":
            said.append(str(item.output))
    return said


def using(*calls: ToolCall, told: str = "Done.") -> Any:
    """A model that makes these calls, one per turn of the caller, and says `told` when a tool has answered."""
    left = list(calls)

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        if answers(context):
            return told
        return left.pop(0) if left else "Fine."

    return reply


def on_disk(directory: Path) -> str:
    return "".join(path.read_text("utf-8") for path in directory.rglob("*") if path.is_file())


def tool_answer(seen: SeenContext) -> str:
    return next(item.text for item in reversed(seen.items) if item.type == "function_call_output")


# -- consent


async def test_without_consent_nothing_is_stored_recalled_or_told() -> None:
    """Issue: capture="consent", nothing is stored or recalled until memory.consent(True)."""
    store = ScriptedStore().knows(TAG, "Lives in Lisbon.").finds(TAG, "Has a boat.")
    memory = memory_over(store, capture="consent")
    model = ScriptedLLM(using(ToolCall("search_memories", {"query": "boat"})))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        assert await memory.preload(ChatContext()) is False
        await say(session, "Do I have a boat?")
        assert store.calls == []
        assert "has not agreed" in tool_answer(model.last)
        assert "NOT saved" in await memory.remember("Has a boat.")
        memory.consent(True)
        await say(session, "And where do I live?")
        assert "Lives in Lisbon." in model.last.text
    await memory.aclose()
    assert "And where do I live?" in stored(store)
    assert "Do I have a boat?" not in everything_sent(store)
    assert memory.stats.turns_withheld == 2


async def test_a_caller_who_takes_consent_back_is_stored_and_recalled_no_more() -> None:
    """Decision 19: what is buffered is discarded; what is stored stays."""
    store = ScriptedStore().knows(TAG, "Lives in Lisbon.")
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "This is stored.")
        await asyncio.sleep(1)
        asked = len(store.calls)
        memory.consent(False)
        await say(session, "This is not stored.")
        assert "Lives in Lisbon." not in model.last.text
        assert len(store.calls) == asked
    await memory.aclose()
    assert "This is stored." in stored(store)
    assert "This is not stored." not in everything_sent(store)


async def test_what_waits_to_be_stored_goes_when_consent_is_taken_back() -> None:
    """Decision 19: stop, and discard."""
    store = ScriptedStore().always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
    memory = memory_over(store)
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        await say(session, "This waits.")
        await asyncio.sleep(5)
        memory.consent(False)
        store.always("append", None)
    await memory.aclose()
    assert store.documents == {}
    assert memory.stats.turns_dropped == 2


async def test_another_caller_in_the_same_call_is_asked_anew() -> None:
    """Decision 19: consent is a caller's."""
    store = ScriptedStore()
    memory = memory_over(store, capture="consent")
    memory.consent(True)
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        await say(session, "Ana agreed.")
        memory.bind(container_tag="ben", session_id="room-1")
        await say(session, "Ben was not asked.")
    await memory.aclose()
    assert "Ana agreed." in stored(store)
    assert store.tags == {TAG}
    assert "Ben was not asked." not in everything_sent(store)


async def test_words_spoken_before_consent_are_not_used_when_it_comes_in_mid_turn() -> None:
    """Decision 19: a key pressed while the caller speaks; their turn, the answer and its recall stay out."""
    store = ScriptedStore().knows(TAG, "Lives in Lisbon.")
    memory = memory_over(store, capture="consent", mirror=False)
    model = ScriptedLLM(
        lambda context, tools: "Your hidden boat." if "hidden" in str(context.items[-1]) else "Yes."
    )
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        hears(session, "my hidden boat number")
        memory.consent(True)
        hears(session, "my hidden boat number is seven")
        await say(session, "My hidden boat number is seven.")
        assert "Lives in Lisbon." in model.last.text
        await say(session, "This is for the record.")
    await memory.aclose()
    assert "This is for the record." in stored(store)
    assert "hidden" not in everything_sent(store)


async def test_the_answer_to_the_caller_who_agrees_by_a_tool_is_looked_up_and_stored_no_more() -> None:
    """Decision 19: consent given by a tool comes after the words that asked for it."""
    store = ScriptedStore()
    memory = memory_over(store, capture="consent", mirror=False)

    @llm.function_tool
    async def agree() -> str:
        """The caller agrees."""
        memory.consent(True)
        return "noted"

    model = ScriptedLLM(using(ToolCall("agree", {}), told="Your hidden boat, then."))
    agent = SupermemoryAgent(memory, instructions="Be kind.", tools=[agree])
    async with started(agent, llm=model) as session:
        memory.attach(session)
        await say(session, "You may keep my hidden boat number.")
        await say(session, "This is for the record.")
    await memory.aclose()
    assert "This is for the record." in stored(store)
    assert "hidden" not in everything_sent(store)


# -- off the record


async def test_what_is_said_off_the_record_is_neither_stored_nor_searched_for() -> None:
    """Issue: memory.off_the_record()."""
    store = ScriptedStore().knows(TAG, "Lives in Lisbon.")
    memory = memory_over(store, mirror=False)
    model = ScriptedLLM(lambda context, tools: f"You said: {len(context.items)} things, some secret.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Before the secret one.")
        with memory.off_the_record():
            await say(session, "The hidden words of mine.")
            assert "Lives in Lisbon." in model.last.text
            assert "NOT saved" in await memory.remember("Has hidden words.")
            assert "could NOT be searched" in await memory.search("hidden words")
        await say(session, "After it.")
    await memory.aclose()
    document = stored(store)
    assert "Before the secret one." in document
    assert "After it." in document
    assert document.count("Agent: You said") == 2
    assert "hidden" not in everything_sent(store)
    assert memory.stats.turns_withheld == 2


async def test_a_caller_can_ask_for_it_when_the_tools_are_offered() -> None:
    """Issue: as an optional tool the caller can ask for."""
    store = ScriptedStore()
    memory = memory_over(store, off_the_record_tools=True)
    calls = [ToolCall("go_off_the_record"), ToolCall("search_memories", {"query": "a secret"})]
    model = ScriptedLLM(using(*calls, ToolCall("go_on_the_record"), told="The secret is safe."))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Off the record, there is a secret.")
        asked = len(store.calls)
        await say(session, "A secret that nobody keeps.")
        assert "this is off the record" in tool_answer(model.last)
        assert len(store.calls) == asked
        await say(session, "You may write this secret down.")
        await say(session, "I like tea.")
    await memory.aclose()
    assert "I like tea." in stored(store)
    assert "secret" not in stored(store)


async def test_the_tools_are_offered_only_when_they_are_asked_for() -> None:
    """Issue: an optional tool."""
    offered = {
        wanted: {
            tool.info.name
            for tool in memory_over(ScriptedStore(), off_the_record_tools=wanted).tools()
            if isinstance(tool, llm.FunctionTool)
        }
        for wanted in (False, True)
    }
    assert offered[True] - offered[False] == {"go_off_the_record", "go_on_the_record"}


async def test_a_turn_that_began_off_the_record_is_not_kept_when_it_ends_on_it() -> None:
    """Decision 19: off the record goes by words, not by moments."""
    store = ScriptedStore()
    memory = memory_over(store, mirror=False)
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        with memory.off_the_record():
            hears(session, "my hidden boat number")
        await say(session, "My hidden boat number is seven.")
        await say(session, "This is for the record.")
    await memory.aclose()
    assert "This is for the record." in stored(store)
    assert "hidden" not in everything_sent(store)


@pytest.mark.parametrize("redacted", [False, True])
async def test_unfinished_words_are_searched_for_only_without_a_redactor(redacted: bool) -> None:
    """Decision 19: half of a number is none that a redactor knows."""
    store = ScriptedStore()
    memory = memory_over(store, mirror=False, redact=without_digits if redacted else None)
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        hears(session, "my boat insurance number is 41")
        await asyncio.sleep(1)
        assert len(store.called("search")) == (0 if redacted else 1)
    await memory.aclose()


# -- discard


async def test_discard_empties_what_is_buffered(tmp_path: Path) -> None:
    """Issue: discard() empties what is buffered."""
    store = ScriptedStore()
    memory = SupermemoryLiveKit.from_store(store, params=InputParams(spool_dir=tmp_path))
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        await say(session, "Nobody is bound yet.")
        assert memory.discard() == 2
        memory.bind(container_tag=TAG, session_id="room-1")
        await say(session, "Now it is Ana.")
    await memory.aclose()
    assert "Now it is Ana." in stored(store)
    assert "Nobody is bound" not in stored(store)
    assert "Nobody is bound" not in on_disk(tmp_path)


# -- redact


def without_digits(text: str) -> str | None:
    return None if "drop this" in text else re.sub(r"\d+", "#", text)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("slow", [False, True])
async def test_nothing_that_leaves_the_call_was_not_redacted(
    mirror: bool, slow: bool, tmp_path: Path
) -> None:
    """Issue: before any buffer, spool or query sees it; decision 19: the tools too. Case P3."""

    async def slowly(text: str) -> str | None:
        await asyncio.sleep(0.3)
        return without_digits(text)

    store = ScriptedStore().finds(TAG, "Has a boat with 2 masts.")
    memory = memory_over(store, mirror=mirror, spool_dir=tmp_path, redact=slowly if slow else without_digits)
    calls = [
        ToolCall("remember", {"memory": "Pays with 4111."}),
        ToolCall("search_memories", {"query": "boat 4111"}),
        ToolCall("forget", {"memory_text": "Pays with 4111."}),
    ]
    model = ScriptedLLM(using(*calls, told="Your 4111 is fine."))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for words in ["My card is 4111, remember it.", "What has my boat 4111?", "Forget the 4111 card."]:
            await say(session, words)
        assert "Saved without what this agent may not store, as: Pays with #." in model.seen[1].text
        assert "Has a boat with 2 masts." in model.seen[2].text
        await say(session, "Please drop this turn.")
        await say(session, "And this one stays.")
        assert "4111" not in on_disk(tmp_path)
    await memory.aclose()
    assert "My card is #, remember it." in stored(store)
    assert "Your # is fine." in stored(store)
    assert "And this one stays." in stored(store)
    assert "4111" not in everything_sent(store)
    assert "drop this" not in everything_sent(store)
    lines = [line.partition("] ")[2] for line in stored(store).splitlines()]
    assert lines.index("Caller: My card is #, remember it.") < lines.index("Caller: And this one stays.")


async def test_a_reply_waits_for_the_redactor_no_longer_than_for_recall() -> None:
    """Decision 19, Design 4.4: recall_timeout is the most a reply can wait."""

    async def redact(text: str) -> str:
        await asyncio.sleep(4)
        return text

    store = ScriptedStore().knows(TAG, "Lives in Lisbon.")
    memory = memory_over(store, redact=redact, recall_timeout=1.0, mirror=False)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await memory.preload(ChatContext())
        began = loop.time()
        await say(session, "Where do I live?")
        assert loop.time() - began < 1.5
        assert "Lives in Lisbon." in model.last.text
        assert store.called("search") == []
        await asyncio.sleep(10)
    await memory.aclose()
    assert "Where do I live?" in stored(store)


async def test_what_the_redactor_took_of_the_time_recall_does_not_get() -> None:
    """Decision 19, Design 4.4: one budget for both."""

    async def redact(text: str) -> str:
        await asyncio.sleep(0.8)
        return text

    store = ScriptedStore().always("search", Hang())
    memory = memory_over(store, redact=redact, recall_timeout=1.0, mirror=False)
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        await memory.preload(ChatContext())
        began = loop.time()
        await say(session, "Where do I live?")
        assert loop.time() - began < 1.1
        assert len(store.called("search")) == 1
    await memory.aclose()


# -- while something is forgotten


def with_an_address() -> ScriptedStore:
    store = ScriptedStore()
    store.hits[TAG] = [Hit("Lives at 5 Elm Street.", 0.9, memory_id="mem-0")]
    return store


async def test_a_turn_that_has_something_forgotten_does_not_bring_it_back() -> None:
    """Issue: a turn that only manages memory ("forget my old address, …")."""
    store = with_an_address()
    memory = memory_over(store)
    model = ScriptedLLM(using(ToolCall("forget", {"memory_id": "mem-0"}), told="5 Elm Street is forgotten."))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Forget that I live at 5 Elm Street.")
        assert "kept out of the memory" in tool_answer(model.last)
        await asyncio.sleep(1)
        await say(session, "What is the time?")
    await memory.aclose()
    assert "Elm" not in stored(store)
    assert "What is the time?" in stored(store)
    stats = memory.stats
    assert (stats.turns_captured, stats.turns_written, stats.turns_dropped) == (3, 2, 1)
    assert stats.turns_withheld == 1


async def test_neither_does_it_when_the_agent_has_to_ask_which_fact_is_meant() -> None:
    """Decision 19: from the moment forgetting is tried, nothing is written until it is decided."""
    store = with_an_address()
    memory = memory_over(store)
    calls = [ToolCall("forget", {"memory_text": "my address"}), ToolCall("forget", {"memory_id": "mem-0"})]
    model = ScriptedLLM(using(*calls, told="5 Elm Street, is it?"))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Forget my address, 5 Elm Street.")
        await asyncio.sleep(1)
        await say(session, "Yes, 5 Elm Street.")
        await asyncio.sleep(1)
        await say(session, "Thank you for that.")
    await memory.aclose()
    assert "Elm" not in stored(store)
    assert "Thank you for that." in stored(store)


async def test_neither_does_it_when_the_agent_has_to_ask_twice() -> None:
    """Decision 19: the turns from the first try on belong together, also those without one."""
    store = with_an_address()
    memory = memory_over(store)

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        if answered := answers(context):
            return "Is it 5 Elm Street?" if "NOT" in answered[-1] else "Forgotten."
        return {
            "Forget where I live, Elm Street.": ToolCall("forget", {"memory_text": "my address"}),
            "The one in Elm Street.": "Number 5 Elm Street?",
            "Yes, 5 Elm Street.": ToolCall("forget", {"memory_id": "mem-0"}),
        }.get(str(context.items[-1].text_content if context.items[-1].type == "message" else ""), "Fine.")

    async with started(agent_over(memory), llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        for words in (
            "Forget where I live, Elm Street.",
            "The one in Elm Street.",
            "Yes, 5 Elm Street.",
            "Thanks.",
        ):
            await say(session, words)
            await asyncio.sleep(1)
    await memory.aclose()
    assert "Elm" not in stored(store)
    assert "Thanks." in stored(store)


async def test_what_was_held_back_is_written_when_nothing_is_forgotten_after_all() -> None:
    """Design 5: capture loses nothing; the caller changed their mind."""
    store = with_an_address()
    memory = memory_over(store)
    model = ScriptedLLM(using(ToolCall("forget", {"memory_text": "my address"}), told="Which one?"))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Forget my address.")
        await asyncio.sleep(1)
        assert store.called("append") == []
        for words in ("Oh, leave it.", "What is the time?", "And the date?", "Thank you."):
            await say(session, words)
        await asyncio.sleep(1)
        assert "Forget my address." in stored(store)
    await memory.aclose()
    assert memory.stats.turns_dropped == memory.stats.turns_withheld == 0


async def test_what_the_caller_said_to_have_it_forgotten_is_not_recalled_later_in_the_call() -> None:
    """Decision 19: the mirror holds the call's own turns too."""
    store = with_an_address()
    memory = memory_over(store)
    model = ScriptedLLM(using(ToolCall("forget", {"memory_id": "mem-0"}), told="Yes."))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await memory.preload(ChatContext())
        await say(session, "Forget that I live at 5 Elm Street.")
        for number in range(30):
            await say(session, f"Tell me about number {number}.")
        context = ChatContext.empty()
        context.add_message(role="user", content="Elm Street?")
        await memory.enrich(context)
        shown = " ".join(item.text_content or "" for item in context.items if item.type == "message")
    await memory.aclose()
    assert "5 Elm Street" not in shown


async def test_words_that_the_agent_says_before_it_forgets_do_not_have_the_turn_stored() -> None:
    """Decision 19: a model says "one moment" and calls the tool in one reply."""
    store = with_an_address()
    memory = memory_over(store)

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        if answers(context):
            return "5 Elm Street is forgotten."
        return ("One moment, please.", ToolCall("forget", {"memory_id": "mem-0"}))

    async with started(agent_over(memory), llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        await say(session, "Forget that I live at 5 Elm Street.")
        await asyncio.sleep(5)
    await memory.aclose()
    assert "Elm" not in stored(store)


@pytest.mark.parametrize(
    "ending",
    [
        Fail(Conflict("forget answered 409", status=409)),
        Fail(ServiceTimeout("no answer", uncertain=True)),
        Fail(ServiceTimeout("no answer", uncertain=True), committed=True),
    ],
    ids=str,
)
async def test_neither_does_it_when_nobody_knows_whether_the_fact_is_gone(ending: Fail) -> None:
    """Decision 19: in doubt the turn is kept out, however many exchanges follow."""
    store = with_an_address().script("forget", ending)
    memory = memory_over(store)
    model = ScriptedLLM(
        using(ToolCall("forget", {"memory_id": "mem-0"}), told="About 5 Elm Street I cannot tell.")
    )
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Forget that I live at 5 Elm Street.")
        for number in range(5):
            await say(session, f"Number {number}.")
            await asyncio.sleep(1)
    await memory.aclose()
    assert "Elm" not in stored(store)
    assert "Number 0." in stored(store)


async def test_neither_does_it_when_the_fact_was_gone_already() -> None:
    """Decision 19: said twice; the second time the service finds nothing."""
    store = ScriptedStore()
    memory = memory_over(store)
    call = ToolCall("forget", {"memory_text": "Lives at 5 Elm Street."})
    async with started(agent_over(memory), llm=ScriptedLLM(using(call, call))) as session:
        memory.attach(session)
        await memory.remember("Lives at 5 Elm Street.")
        for words in ("Forget that I live at 5 Elm Street.", "5 Elm Street, forget it, please.", *"abcde"):
            await say(session, words)
            await asyncio.sleep(1)
    await memory.aclose()
    assert len(store.called("forget")) == 2
    assert "Elm" not in stored(store)


async def test_neither_does_it_when_an_earlier_write_is_slow() -> None:
    """Decision 19: a write that is under way takes no turn along whose reply is still being made."""
    store = with_an_address().script("append", Work(after=6)).script("forget", Work(after=3))
    memory = memory_over(store)
    calls = {"Forget that I live at 5 Elm Street.": ToolCall("forget", {"memory_id": "mem-0"})}

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        last = context.items[-1]
        return calls.get(str(last.text_content), "Fine.") if last.type == "message" else "Done."

    async with started(agent_over(memory), llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        await say(session, "Hello.")
        await say(session, "How are you?")
        await asyncio.sleep(4)
        await say(session, "Forget that I live at 5 Elm Street.")
        await asyncio.sleep(5)
    await memory.aclose()
    assert "Elm" not in everything_sent(store)
    assert "How are you?" in stored(store)


async def test_what_is_discarded_is_not_recalled_later_in_the_call() -> None:
    """Decision 19: `discard` takes back everything that is not acknowledged, in this process's copy too."""
    store = ScriptedStore().always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "My hidden pigeons are seven.")
        assert memory.discard() == 2
        for number in range(30):
            await say(session, f"Tell me about number {number}.")
        context = ChatContext.empty()
        context.add_message(role="user", content="What about the hidden pigeons and number 3?")
        await memory.enrich(context)
        shown = context.items[0].text_content if context.items[0].type == "message" else ""
    await memory.aclose()
    assert "number 3." in (shown or ""), "the mirror does show what was said in this call"
    assert "pigeons" not in (shown or "")


async def test_no_control_character_hides_a_number_from_the_redactor() -> None:
    """Decision 19: the redactor sees a turn as it is stored, and looked up, in the end."""
    store = ScriptedStore()
    memory = memory_over(store, redact=lambda text: re.sub(r"\d{4,}", "#", text), mirror=False)
    async with started(agent_over(memory), llm=ScriptedLLM(lambda context, tools: "Yes.")) as session:
        memory.attach(session)
        await say(session, "My card is 411\x07122\x07223, yes.")
    await memory.aclose()
    assert "My card is #, yes." in stored(store)
    assert [call.arguments["query"] for call in store.called("search")] == ["My card is #, yes."]
