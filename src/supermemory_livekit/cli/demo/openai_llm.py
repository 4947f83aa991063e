"""An OpenAI-compatible chat model for `demo --chat`: the smallest adapter that streams words and calls tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai
from livekit.agents import APIConnectionError, APIStatusError, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr

__all__ = ["OpenAIChatLLM", "model_from_env"]


def model_from_env(environment: Mapping[str, str] = os.environ) -> OpenAIChatLLM | None:
    """The model that `OPENAI_MODEL` names, when `OPENAI_API_KEY` or `OPENAI_BASE_URL` says where it is.

    A key alone is no wish to use it, so without `OPENAI_MODEL` there is none.
    """
    model, key, url = (
        environment.get(name, "").strip() for name in ("OPENAI_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    )
    if not model or not (key or url):
        return None
    # Servers on one's own machine often take no key; the client insists on one.
    return OpenAIChatLLM(
        model, openai.AsyncOpenAI(api_key=key or "none", base_url=url or None, max_retries=0)
    )


class OpenAIChatLLM(llm.LLM[Any]):
    """Speaks the chat completions API. `aclose` closes the client."""

    def __init__(self, model: str, client: openai.AsyncOpenAI) -> None:
        super().__init__()
        self._model = model
        self.client = client

    @property
    def model(self) -> str:
        return self._model

    @property
    def provider(self) -> str:
        return str(self.client.base_url.host)

    async def aclose(self) -> None:
        await self.client.close()

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[dict[str, Any]] = NOT_GIVEN,
    ) -> llm.LLMStream:
        return _Stream(self, chat_ctx=chat_ctx, tools=list(tools or ()), conn_options=conn_options)


@dataclass
class _Call:
    """A tool call whose parts arrive one after the other."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=lambda: list[str]())


class _Stream(llm.LLMStream):
    def __init__(
        self,
        model: OpenAIChatLLM,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        conn_options: APIConnectOptions,
    ) -> None:
        super().__init__(model, chat_ctx=chat_ctx, tools=tools, conn_options=conn_options)  # pyright: ignore[reportUnknownMemberType]
        self._model = model

    async def _run(self) -> None:
        try:
            await self._relay()
        except openai.APIStatusError as error:
            raise APIStatusError(
                f"the model answers {error.status_code}", status_code=error.status_code, retryable=False
            ) from None
        except openai.APIError as error:
            raise APIConnectionError(f"the model cannot be reached: {type(error).__name__}") from None

    async def _relay(self) -> None:
        messages: list[Any] = self._chat_ctx.to_provider_format("openai")[0]  # pyright: ignore
        tools = llm.ToolContext(self._tools).parse_function_tools("openai", strict=False)
        options: dict[str, Any] = {"tools": tools} if tools else {}
        stream = await self._model.client.chat.completions.create(
            model=self._model.model,
            messages=messages,
            stream=True,
            timeout=self._conn_options.timeout,
            **options,
        )
        calls: dict[int, _Call] = {}
        async with stream:
            async for chunk in stream:
                for choice in chunk.choices:
                    if choice.delta.content:
                        self._send(chunk.id, content=choice.delta.content)
                    for part in choice.delta.tool_calls or ():
                        call = calls.setdefault(part.index, _Call())
                        call.id = part.id or call.id
                        if part.function is not None:
                            call.name = part.function.name or call.name
                            call.arguments.append(part.function.arguments or "")
        if calls:
            self._send(
                "calls",
                tool_calls=[
                    llm.FunctionToolCall(
                        name=call.name, arguments="".join(call.arguments) or "{}", call_id=call.id
                    )
                    for call in calls.values()
                ],
            )

    def _send(
        self,
        request: str,
        *,
        content: str | None = None,
        tool_calls: list[llm.FunctionToolCall] | None = None,
    ) -> None:
        delta = llm.ChoiceDelta(role="assistant", content=content, tool_calls=tool_calls or [])
        self._event_ch.send_nowait(llm.ChatChunk(id=request, delta=delta))
