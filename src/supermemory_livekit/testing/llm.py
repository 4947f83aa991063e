"""A language model of LiveKit whose replies a test computes, and which remembers what it was shown."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from livekit.agents import llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr

from .script import UnexpectedCall

__all__ = ["Reply", "ReplyFunction", "ScriptedLLM", "SeenContext", "SeenItem", "ToolCall", "snapshot"]


@dataclass(frozen=True)
class ToolCall:
    """A function call that the scripted model makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())


Reply: TypeAlias = "str | ToolCall | tuple[str | ToolCall, ...]"
"""What a scripted model says: words, a function call, or a tuple of several in order."""

ReplyFunction: TypeAlias = "Callable[[llm.ChatContext, list[llm.Tool]], Reply]"


@dataclass(frozen=True)
class SeenItem:
    """A chat item as it was when the model saw it; later changes do not reach it."""

    id: str
    type: str
    role: str | None
    text: str
    """Words of a message, arguments of a function call, output of a function."""
    name: str | None = None
    """Name of the function, for calls and outputs."""
    created_at: float = 0.0


@dataclass
class SeenContext:
    """One request to a scripted model."""

    items: tuple[SeenItem, ...]
    tools: tuple[str, ...]
    """Names of the function tools that were offered."""
    at: float
    """Loop time of the request in seconds."""
    ended: float | None = None
    """Loop time at which the reply was complete or the request was given up."""
    cancelled: bool = False
    """True when the reply was given up, for instance because a preemptive attempt was superseded."""

    @property
    def text(self) -> str:
        """Everything the model could read, one item a line."""
        return "\n".join(item.text for item in self.items)

    @property
    def last_user(self) -> str | None:
        """The words of the last user message."""
        return next((item.text for item in reversed(self.items) if item.role == "user"), None)

    def having(self, *, role: str | None = None, id_prefix: str = "") -> list[SeenItem]:
        """The items with this role whose id starts with `id_prefix`."""
        return [i for i in self.items if (role is None or i.role == role) and i.id.startswith(id_prefix)]


def snapshot(items: Iterable[llm.ChatItem]) -> tuple[SeenItem, ...]:
    """Freeze chat items, so that a test can compare what they were with what they became."""
    return tuple(_freeze(item) for item in items)


def _freeze(item: llm.ChatItem) -> SeenItem:
    role, text, name = None, "", None
    if item.type == "message":
        role, text = str(item.role), item.text_content or ""
    elif item.type == "function_call":
        text, name = item.arguments, item.name
    elif item.type == "function_call_output":
        text, name = item.output, item.name
    return SeenItem(item.id, item.type, role, text, name, item.created_at)


class ScriptedLLM(llm.LLM[Any]):
    """Answers with what `reply` returns for the context and tools of each request.

    `reply` is a function, or a list whose entries are used one per request, or one fixed reply. Requests are kept in
    `seen`. The first word comes `first_token` seconds after the request, each later word `pace` seconds after the one
    before, on the loop's clock.

    Running out of replies, and a `ToolCall` of a tool that was not offered, raise `UnexpectedCall`, which ends the
    turn. The session may swallow it, so `verify()` raises it again; `TextCaller` and `ScriptedCaller` call that at
    their end.
    With `unknown_tools` it may call any tool, as real models now and then do.
    """

    def __init__(
        self,
        reply: ReplyFunction | Reply | list[Reply] = "ok",
        *,
        first_token: float = 0.0,
        pace: float = 0.0,
        unknown_tools: bool = False,
    ) -> None:
        super().__init__()
        self.seen: list[SeenContext] = []
        self.first_token = first_token
        self.pace = pace
        self._reply = reply
        self._unknown_tools = unknown_tools
        self._position = itertools.count()
        self._faults: list[str] = []

    @property
    def model(self) -> str:
        return "scripted"

    @property
    def provider(self) -> str:
        return "supermemory_livekit.testing"

    @property
    def last(self) -> SeenContext:
        """The newest request."""
        return self.seen[-1]

    def verify(self) -> None:
        """Raise `UnexpectedCall` when replies ran out, or a tool was called that was not offered."""
        if self._faults:
            raise UnexpectedCall("; ".join(self._faults))

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
        tools = list(tools or ())
        seen = SeenContext(
            items=snapshot(chat_ctx.items),
            tools=tuple(_names(tools)),
            at=asyncio.get_running_loop().time(),
        )
        self.seen.append(seen)
        parts = self._parts(chat_ctx, tools)
        return _Stream(self, seen, parts, chat_ctx=chat_ctx, tools=tools, conn_options=conn_options)

    def _parts(self, chat_ctx: llm.ChatContext, tools: list[llm.Tool]) -> list[str | ToolCall]:
        reply = self._reply
        if callable(reply):
            reply = reply(chat_ctx, tools)
        elif isinstance(reply, list):
            position = next(self._position)
            if position >= len(reply):
                raise self._fault(f"the scripted model has {len(reply)} replies and was asked once more")
            reply = reply[position]
        parts = [reply] if isinstance(reply, (str, ToolCall)) else list(reply)
        offered = list(_names(tools))
        for part in parts:
            if isinstance(part, ToolCall) and not self._unknown_tools and part.name not in offered:
                named = ", ".join(map(repr, offered)) or "none"
                raise self._fault(
                    f"the scripted model called {part.name!r}; the tools it was offered: {named}"
                )
        return parts

    def _fault(self, what: str) -> UnexpectedCall:
        self._faults.append(what)
        return UnexpectedCall(what)


class _Stream(llm.LLMStream):
    def __init__(
        self,
        model: ScriptedLLM,
        seen: SeenContext,
        parts: list[str | ToolCall],
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        conn_options: APIConnectOptions,
    ) -> None:
        super().__init__(model, chat_ctx=chat_ctx, tools=tools, conn_options=conn_options)  # pyright: ignore[reportUnknownMemberType]
        self._model = model
        self._seen = seen
        self._parts = parts
        self._number = len(model.seen)

    async def _run(self) -> None:
        try:
            await asyncio.sleep(self._model.first_token)
            for index, part in enumerate(self._parts):
                if isinstance(part, ToolCall):
                    self._send(tool_calls=[self._call(part, index)])
                    continue
                for position, word in enumerate(_words(part)):
                    if position and self._model.pace:
                        await asyncio.sleep(self._model.pace)
                    self._send(content=word)
        except asyncio.CancelledError:
            self._seen.cancelled = True
            raise
        finally:
            self._seen.ended = asyncio.get_running_loop().time()

    def _send(
        self, *, content: str | None = None, tool_calls: list[llm.FunctionToolCall] | None = None
    ) -> None:
        delta = llm.ChoiceDelta(role="assistant", content=content, tool_calls=tool_calls or [])
        self._event_ch.send_nowait(llm.ChatChunk(id=f"request_{self._number}", delta=delta))

    def _call(self, part: ToolCall, index: int) -> llm.FunctionToolCall:
        return llm.FunctionToolCall(
            name=part.name,
            arguments=json.dumps(dict(part.arguments)),
            call_id=f"call_{self._number}_{index}",
        )


def _words(text: str) -> list[str]:
    """The words of `text`, each with the space before it, so that they join to the text again."""
    words = text.split(" ")
    return words[:1] + [f" {word}" for word in words[1:]]


def _names(tools: Iterable[llm.Tool | llm.Toolset]) -> Iterable[str]:
    for tool in tools:
        if isinstance(tool, llm.Toolset):
            yield from _names(tool.tools)
        elif isinstance(tool, (llm.FunctionTool, llm.RawFunctionTool)):
            yield tool.info.name
