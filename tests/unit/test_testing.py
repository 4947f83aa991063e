from __future__ import annotations

from livekit.agents import Agent, function_tool
from tests.support.sessions import say, started

from supermemory_livekit.testing import ScriptedLLM, ToolCall


async def test_scripted_llm_sees_turns_and_calls_tools() -> None:
    """Test kit: replies are computed, requests are recorded."""

    @function_tool
    async def lookup(name: str) -> str:
        """Look it up."""
        return f"found {name}"

    model = ScriptedLLM([ToolCall("lookup", {"name": "x"}), "there it is", "bye"])
    async with started(Agent(instructions="be kind", tools=[lookup]), llm=model) as session:
        assert await say(session, "where is x") == "there it is"
        assert await say(session, "thanks") == "bye"
    assert [r.last_user for r in model.seen] == ["where is x", "where is x", "thanks"]
    assert model.seen[0].tools == ("lookup",)
    assert "found x" in model.seen[1].text
