"""The adapter to OpenAI-compatible models, against a real HTTP server that plays one."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import APIConnectOptions, APIStatusError, llm

from supermemory_livekit.cli.demo.openai_llm import OpenAIChatLLM, model_from_env

from .chat_model import ChatModelDouble, served

ONCE = APIConnectOptions(max_retry=0, timeout=10)


@llm.function_tool
async def look_up(city: str) -> str:
    """Look something up."""
    return city


async def ask(double: ChatModelDouble, **settings: str) -> tuple[str, list[llm.FunctionToolCall]]:
    model = model_from_env({"OPENAI_MODEL": "double", "OPENAI_BASE_URL": double.url, **settings})
    assert isinstance(model, OpenAIChatLLM)
    ctx = llm.ChatContext()
    ctx.add_message(role="user", content="Where do I live?")
    words, calls = "", []
    try:
        async with model.chat(chat_ctx=ctx, tools=[look_up], conn_options=ONCE) as stream:
            async for chunk in stream:
                assert chunk.delta is not None
                words += chunk.delta.content or ""
                calls += chunk.delta.tool_calls
    finally:
        await model.aclose()
    return words, calls


async def test_words_are_streamed_and_the_context_and_tools_are_sent() -> None:
    """Design 1: `demo --chat` with an OpenAI-compatible model."""
    with served(ChatModelDouble("You live in Porto.")) as double:
        words, calls = await asyncio.wait_for(ask(double, OPENAI_API_KEY="sk-mine"), 20)
    assert words.strip() == "You live in Porto."
    assert calls == []
    [request] = double.requests
    assert request["model"] == "double"
    assert request["messages"][-1] == {"role": "user", "content": "Where do I live?"}
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look_up"]
    assert double.keys == ["Bearer sk-mine"]


async def test_a_tool_call_that_arrives_in_pieces_is_put_together() -> None:
    """The chat completions API streams the arguments of a call in parts."""
    with served(ChatModelDouble(("look_up", {"city": "Porto"}))) as double:
        words, calls = await asyncio.wait_for(ask(double), 20)
    assert words == ""
    assert [(call.name, call.arguments, call.call_id) for call in calls] == [
        ("look_up", '{"city": "Porto"}', "call_1")
    ]


async def test_a_refusal_is_an_error_of_livekit_without_the_servers_words() -> None:
    """LiveKit tells its users about model errors by its own classes."""
    with served(ChatModelDouble(status=401)) as double, pytest.raises(APIStatusError) as caught:
        await asyncio.wait_for(ask(double), 20)
    assert caught.value.status_code == 401
    assert "refused" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"OPENAI_API_KEY": "sk-for-something-else"},
        {"OPENAI_MODEL": "some-model"},
        {"OPENAI_MODEL": " ", "OPENAI_API_KEY": "sk"},
    ],
)
def test_without_a_model_that_is_named_and_placed_there_is_none(settings: dict[str, str]) -> None:
    """A key that lies around for something else must not send a caller's words anywhere."""
    assert model_from_env(settings) is None
