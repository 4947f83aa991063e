"""The whole stack of a test: plugin, official SDK, a wire that can fail, and the embedded service on a real file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from livekit.agents import AgentSession, ChatContext, llm
from supermemory import AsyncSupermemory

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.local import Engine, create_app
from supermemory_livekit.local.extraction import Changes, Fact, Known, Line
from supermemory_livekit.local.schemas import ListDocuments
from supermemory_livekit.testing import FaultyTransport, Reply, ScriptedLLM, ToolCall, WireRequest, WireStep

__all__ = ["KEY", "WRITES", "Call", "World", "agent_over", "echo", "spoken", "timed", "uses"]

KEY = "sm-secret-key-4711"

EVERYTHING = "*"
WRITES = ("POST /v3/documents", "POST /ns/*/document", "DELETE *")
"""What changes the service. Reading a document back is no write."""


class CallerSays:
    """An extractor for which everything that the caller says is a memory, so that any leak would be seen."""

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: Any, before: Sequence[Line] = ()
    ) -> Changes:
        del known, before
        return Changes(
            add=tuple(Fact(line.text, False, line.at or at) for line in lines if line.role == "caller")
        )


class World:
    """One file with its engine. Every `client` of it goes over `wire`; `fail` and `work` throw the switch."""

    def __init__(self, path: Path) -> None:
        self.engine = Engine(path, extractor=CallerSays(), load=lambda: None, drain=0.0)
        self.wire = FaultyTransport(
            httpx.ASGITransport(app=create_app(self.engine, api_key=None), raise_app_exceptions=False)
        )
        self._clients: list[AsyncSupermemory] = []

    def client(self) -> AsyncSupermemory:
        http = httpx.AsyncClient(transport=self.wire)
        client = AsyncSupermemory(api_key=KEY, base_url="http://memory.test", http_client=http)
        self._clients.append(client)
        return client

    def memory(self, tag: str | None, session_id: str = "room-1", **params: Any) -> SupermemoryLiveKit:
        """A memory over a client of its own, whose replies wait a second at most unless `params` say otherwise."""
        params.setdefault("recall_timeout", 1.0)
        return SupermemoryLiveKit(
            client=self.client(),
            container_tag=tag,
            session_id=session_id,
            params=InputParams(**params),
        )

    def fail(self, step: WireStep, *routes: str) -> None:
        for route in routes or (EVERYTHING,):
            self.wire.always(route, step)

    def work(self) -> None:
        for route in (EVERYTHING, *WRITES):
            self.wire.always(route, None)

    async def knows(self, tag: str, *facts: str) -> None:
        """Store facts past the wire, and wait until they are memories."""
        for fact in facts:
            memory = {"content": fact, "isStatic": True}
            await self._direct("POST", "/v4/memories", {"containerTag": tag, "memories": [memory]})
        await self.settled()

    async def settled(self) -> None:
        assert await self.engine.settled(10), "the service is still at work"

    async def documents(self, tag: str) -> dict[str | None, str]:
        """Contents of all documents of a tag by custom id, read past the wire."""
        ask = ListDocuments.model_validate({"containerTags": [tag], "limit": 200})
        found, _ = await self.engine.read(lambda operations: operations.documents.page(ask))
        return {document.custom_id: document.content for document in found}

    async def transcript(self, tag: str, session_id: str = "room-1") -> list[str]:
        return spoken((await self.documents(tag)).get(f"lk-{session_id}"))

    async def _direct(self, method: str, path: str, body: object) -> None:
        transport = httpx.ASGITransport(app=create_app(self.engine, api_key=None))
        async with httpx.AsyncClient(transport=transport, base_url="http://memory.test") as http:
            (await http.request(method, path, json=body)).raise_for_status()

    async def aclose(self) -> None:
        for client in self._clients:
            await client.close()
        await self.engine.aclose()

    def check_requests(self) -> None:
        """What holds of every request, whatever a test is about."""
        for request in self.wire.requests:
            check_request(request)


def check_request(request: WireRequest) -> None:
    """Case P8: one tag, one string. Only lists have no other form than the plural in the API."""
    where = f"{request.method} {request.path}"
    assert httpx.URL(request.url).host == "memory.test"
    if request.path.startswith("/ns/"):  # the generation that names the caller in the address
        assert not {"containerTag", "containerTags"} & set(request.body or {})
    elif where in ("POST /v3/documents/list", "POST /v4/memories/list"):
        assert len(request.body["containerTags"]) == 1
    elif where == "DELETE /v3/documents/bulk":
        assert list(request.body) == ["ids"]  # which were listed under one tag
    elif request.body is not None:
        assert "containerTags" not in request.body, where
        assert isinstance(request.body["containerTag"], str), where
        assert request.body["containerTag"], where


def spoken(document: str | None) -> list[str]:
    """The lines of a stored call without their time stamps."""
    return [line.partition("] ")[2] for line in (document or "").splitlines()]


def agent_over(memory: SupermemoryLiveKit, **options: Any) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.", **options)


def echo() -> ScriptedLLM:
    """Repeats the caller; says "Done." once its tools have answered."""
    return ScriptedLLM(_echo)


def _echo(context: ChatContext, tools: list[llm.Tool]) -> Reply:
    del tools
    last = context.items[-1]
    if last.type == "function_call_output":
        return "Done."
    users = [item for item in context.items if item.type == "message" and item.role == "user"]
    return f"You said {users[-1].text_content}"


def uses(*calls: ToolCall) -> ScriptedLLM:
    """Calls these tools at each turn of the caller, then says "Done."."""

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Reply:
        return "Done." if context.items[-1].type == "function_call_output" else tuple(calls)

    return ScriptedLLM(reply)


@dataclass
class Call:
    """Listens to a session: what went wrong in it, and when."""

    session: AgentSession[Any]
    errors: list[object] = field(default_factory=lambda: list[object]())

    def __post_init__(self) -> None:
        self.session.on("error", self.errors.append)
        self.session.on("close", self._closed)

    def _closed(self, event: Any) -> None:
        if event.error is not None:
            self.errors.append(event.error)


async def timed(work: Any) -> tuple[Any, float]:
    """The result, and the seconds of the loop's clock that it took."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    return await work, loop.time() - begun
