"""`attach(session, recall=True)`: agents that know nothing of us recall and have the tools."""

from __future__ import annotations

import asyncio
from typing import Any

from livekit.agents import Agent, AgentTask, ChatContext, function_tool, llm

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import (
    ScriptedCaller,
    ScriptedLLM,
    ScriptedRealtimeModel,
    ScriptedStore,
    ToolCall,
)
from tests.support.sessions import say, started

TAG = "caller-1"


def store_with_facts() -> ScriptedStore:
    store = ScriptedStore()
    store.hits[TAG] = [Hit("Likes tea.", 0.8, memory_id="tea")]
    store.profiles[TAG] = Profile(static=("Is called Ana.",))
    return store


def memory_over(store: ScriptedStore) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(store, container_tag=TAG, session_id="room-1")


class Started:
    """A session that is attached before it starts, as the documentation asks."""

    def __init__(self, memory: SupermemoryLiveKit, model: llm.LLM[Any], **options: Any) -> None:
        from livekit.agents import AgentSession

        self.session = AgentSession[None](llm=model, **options)
        memory.attach(self.session, recall=True)
        memory.attach(self.session, recall=True)

    async def run(self, agent: Agent, *words: str) -> None:
        await asyncio.wait_for(self.session.start(agent), 20)
        try:
            for text in words:
                await say(self.session, text)
        finally:
            await asyncio.wait_for(self.session.aclose(), 20)


async def test_a_plain_first_agent_recalls_once_and_has_the_tools() -> None:
    """Design 4.1: one block, one recall, also for an agent that knows nothing of us."""
    store = store_with_facts()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    await Started(memory, model).run(Agent(instructions="Be kind."), "What do I drink?")
    await memory.aclose()
    assert "Likes tea." in model.seen[0].text
    assert model.seen[0].text.count(FENCE_OPEN) == 1
    assert set(model.seen[0].tools) == {"search_memories", "remember", "forget"}
    assert len(store.called("search")) == 1


async def test_an_agent_with_an_llm_node_of_its_own_keeps_it() -> None:
    """Design 4.1: recall comes before the agent's own node, of whatever kind that is."""
    memory = memory_over(store_with_facts())
    seen: list[str] = []

    class Canned(Agent):
        async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> Any:
            seen.append("\n".join(str(getattr(item, "text_content", "")) for item in chat_ctx.items))
            return "Canned reply."

    started_session = Started(memory, ScriptedLLM(lambda context, tools: "unused"))
    await started_session.run(Canned(instructions="Be kind."), "What do I drink?")
    await memory.aclose()
    assert "Likes tea." in seen[0]


async def test_handoff_targets_and_tasks_recall_too_and_never_twice() -> None:
    """Case L5: A, a task, A again, B, A: each reply has one block, each message one recall, one document is stored."""
    store = store_with_facts()
    memory = memory_over(store)

    class Ask(AgentTask[str]):
        def __init__(self) -> None:
            super().__init__(instructions="Ask for the city.")

        async def on_enter(self) -> None:
            await self.session.generate_reply(instructions="Ask.")

        @function_tool
        async def got_city(self, city: str) -> None:
            """The caller named the city."""
            self.complete(city)

    class Second(Agent):
        def __init__(self, back: Agent) -> None:
            super().__init__(instructions="You are the second.")
            self._back = back

        @function_tool
        async def to_first(self) -> Agent:
            """Go back."""
            return self._back

    class First(Agent):
        @function_tool
        async def ask_city(self) -> str:
            """Ask for the city."""
            return await Ask()

        @function_tool
        async def to_second(self) -> Agent:
            """Hand over."""
            return Second(self)

    calls = {"ask": "ask_city", "over": "to_second", "back": "to_first"}

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        last = context.items[-1]
        words = [i.text_content or "" for i in context.items if i.type == "message" and i.role == "user"]
        # While a task runs, LiveKit shows the call that started it as one in progress, at the end.
        done = last.type == "function_call_output" and "in progress" not in last.output
        if done or not words:
            return "Fine."
        if words[-1] == "Graz":
            return ToolCall("got_city", {"city": "Graz"})
        return ToolCall(calls[words[-1]]) if words[-1] in calls else "Fine."

    # After a task the agent that started it is asked again, and this reply does not look who asks.
    model = ScriptedLLM(reply, unknown_tools=True)
    runner = Started(memory, model)
    await runner.run(
        First(instructions="You are the first."), "hello", "ask", "Graz", "over", "here", "back", "end"
    )
    await memory.aclose()
    assert {seen.text.count(FENCE_OPEN) for seen in model.seen} == {1}
    queries = [call.arguments["query"] for call in store.called("search")]
    assert len(queries) == len(set(queries))
    assert {"You are the second.", "Ask for the city."} <= {seen.items[0].text for seen in model.seen}


async def test_an_agent_of_ours_in_such_a_session_still_recalls_once() -> None:
    """Design 4.2: enrich is idempotent and shares the recall."""
    store = store_with_facts()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    await Started(memory, model).run(SupermemoryAgent(memory, instructions="Be kind."), "What do I drink?")
    await memory.aclose()
    assert model.seen[0].text.count(FENCE_OPEN) == 1
    assert len(store.called("search")) == 1
    assert sorted(model.seen[0].tools) == ["forget", "remember", "search_memories"]


async def test_a_list_of_tools_that_sessions_share_is_left_alone() -> None:
    """Specification: tools are scoped to the bound caller; a shared list would hand them to the next one."""

    @function_tool
    async def own() -> None:
        """Do nothing."""

    shared: list[Any] = [own]
    memory = memory_over(store_with_facts())
    model = ScriptedLLM(lambda context, tools: "Yes.")
    await Started(memory, model, tools=shared).run(Agent(instructions="Be kind."), "Hello.")
    await memory.aclose()
    assert shared == [own]
    assert set(model.seen[0].tools) == {"own", "search_memories", "remember", "forget"}


async def test_preemptive_generation_stays_adopted() -> None:
    """Case L6: also through a wrapped agent."""
    memory = memory_over(store_with_facts())
    model = ScriptedLLM(lambda context, tools: "yes")
    caller = ScriptedCaller(Agent(instructions="Be kind."), llm=model)
    memory.attach(caller.session, recall=True)
    async with caller:
        await caller.says("what do I drink")
        await caller.hears_reply()
    await memory.aclose()
    assert len(model.seen) == 1
    assert "Likes tea." in model.seen[0].text


async def test_a_plain_agent_with_a_realtime_model_is_shown_what_was_recalled() -> None:
    """Design 4.8: through the session, since a realtime model runs no llm_node."""
    memory = memory_over(store_with_facts())
    model = ScriptedRealtimeModel()
    caller = ScriptedCaller(Agent(instructions="Be kind."), llm=model)
    memory.attach(caller.session, recall=True)
    async with caller:
        await caller.says("what do I drink")
        await caller.hears_reply()
        assert "Likes tea." in model.sessions[-1].requests[-1].text
    await memory.aclose()


async def test_without_it_a_plain_agent_does_not_recall() -> None:
    """Design 1: `recall` is opt-in; attach alone captures."""
    store = store_with_facts()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(Agent(instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
    await memory.aclose()
    assert FENCE_OPEN not in model.seen[0].text
    assert store.called("search") == []
