"""What a test of calls has: a server, the double or the one at LIVEKIT_URL, a worker on it, callers, a memory file."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from supermemory_livekit.local import open_local
from tests.e2e.caller import Ring
from tests.e2e.network import ADDRESS, Network, network
from tests.e2e.programs import Program, Report

__all__ = ["World", "spoken", "world"]

DOUBLE_KEYS = {
    "LIVEKIT_API_KEY": "double",
    "LIVEKIT_API_SECRET": "a secret that opens nothing but this double",
}

Documents = dict[tuple[str, str], list[str]]
"""(Container tag, custom id) -> the lines of the document without their time stamps."""


class Call:
    """One caller on the line."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def say(self, text: str) -> str:
        """Say something, and listen to the reply until its end."""
        await self.ask(text)
        return str((await self._program.reports("reply"))["text"])

    async def ask(self, text: str) -> None:
        """Say something, and do not wait."""
        await self._program.order({"do": "say", "text": text})

    async def sees(self, state: str) -> None:
        """Wait until the agent shows that it does this: "thinking", "speaking" or "listening"."""
        await self._program.reports("state", if_=lambda report: report["state"] == state)

    async def hears(self, words: str) -> None:
        """Wait until these words of a reply have been spoken."""
        await self._program.reports("hears", if_=lambda report: words in report["text"])

    async def hang_up(self) -> None:
        await self._program.order({"do": "hang up"})
        await self._program.finish()

    async def ends_by(self, order: str) -> str:
        """Let the backend end the call: "be removed" or "delete room". Returns the reason the caller is given."""
        await self._program.order({"do": order})
        left: Report = await self._program.reports("left")
        await self._program.finish()
        return str(left["reason"])

    async def vanish(self) -> None:
        """The caller's device dies."""
        await self._program.kill()


@dataclass
class World:
    folder: Path
    prefix: Network
    environment: Mapping[str, str]
    """LIVEKIT_URL and keys, the memory, and what this process has."""
    agent: str
    """Name under which the worker is dispatched."""
    worker: Program
    _names: str
    _waiting: list[Program]
    """Callers who ring next, started ahead of time since that takes a second."""

    def room(self, name: str) -> str:
        """A room's name that no other run of these tests uses."""
        return f"{self._names}-{name}"

    @asynccontextmanager
    async def rings(
        self,
        room: str,
        caller: str,
        *,
        metadata: str = "",
        attributes: Mapping[str, str] | None = None,
        departure_timeout: int = 1,
        with_agent: bool = True,
    ) -> AsyncGenerator[Call]:
        """A caller on the line with the agent, who is sent for unless there is one in the room still."""
        # Nobody else may take the same one while the next one is started.
        start = (self.folder, self.prefix, self.environment)
        program = self._waiting.pop() if self._waiting else await _start_caller(*start)
        self._waiting.append(await _start_caller(*start))
        try:
            ring = Ring(
                room=room,
                identity=caller,
                agent=self.agent if with_agent else "",
                metadata=metadata,
                attributes=attributes or {},
                departure_timeout=departure_timeout,
            )
            await program.order(asdict(ring))
            await program.reports("ready")
            yield Call(program)
        except (AssertionError, asyncio.TimeoutError) as error:
            raise AssertionError(f"{error or type(error).__name__}\n{self._logs()}") from error
        finally:
            await program.kill()

    async def ended(self, room: str) -> None:
        """Wait until the job in this room is over; nothing is written after that."""
        await self.worker.reports("ended", if_=lambda report: report["room"] == room)

    async def conversation(
        self,
        room: str,
        caller: str,
        *says: str,
        metadata: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> list[str]:
        """A whole call: say these things, hang up, and wait until the job is over. Returns the replies."""
        async with self.rings(room, caller, metadata=metadata, attributes=attributes) as call:
            replies = [await call.say(words) for words in says]
            await call.hang_up()
        await self.ended(room)
        return replies

    async def documents(self) -> Documents:
        """Every document in the memory, whoever's it is."""
        found: Documents = {}
        async with open_local(self.folder / "memory.db") as service:
            for tag in (await service.get("/v3/container-tags/list")).json():
                name = tag["containerTag"]
                body = {"containerTags": [name], "includeContent": True, "limit": 200}
                for document in (await service.post("/v3/documents/list", json=body)).json()["memories"]:
                    lines = document["content"].splitlines()
                    found[name, document["customId"]] = [line.partition("] ")[2] for line in lines]
        return found

    async def remembered(self, *rooms: str) -> Documents:
        """The documents of these rooms."""
        names = {f"lk-{room}" for room in rooms}
        return {key: lines for key, lines in (await self.documents()).items() if key[1] in names}

    async def close(self) -> None:
        """Nobody rings any more."""
        for program in self._waiting:
            await program.kill()

    def _logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text('utf-8', 'replace')}" for log in logs)


@asynccontextmanager
async def world(folder: Path, *, executor: str = "process") -> AsyncGenerator[World]:
    """A server with one worker. Everything has ended when the block is left.

    Raises:
        NoNetwork: There is no LIVEKIT_URL and no network for the double.
    """
    names = f"e2e-{uuid.uuid4().hex[:8]}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
        "SUPERMEMORY_API_KEY": "unused",
        "SUPERMEMORY_BASE_URL": "local",
        "SUPERMEMORY_LOCAL_PATH": str(folder / "memory.db"),
        # The quick start's agent by a name of this run: another worker on that server may have it, too.
        "LIVEKIT_AGENT_NAME_OVERRIDE": names,
    }
    async with _server(folder, environment) as (prefix, access):
        environment |= access
        worker = await Program.start(
            "tests.e2e.worker", executor, prefix=prefix, environment=environment, log=folder / "worker.log"
        )
        try:
            await worker.reports("registered")
            caller = await _start_caller(folder, prefix, environment)
            here = World(
                folder, prefix, environment, agent=names, worker=worker, _names=names, _waiting=[caller]
            )
            try:
                yield here
            finally:
                await here.close()
            await worker.finish()
        finally:
            await worker.kill()


async def _start_caller(folder: Path, prefix: Network, environment: Mapping[str, str]) -> Program:
    return await Program.start(
        "tests.e2e.caller", prefix=prefix, environment=environment, log=folder / "callers.log"
    )


@asynccontextmanager
async def _server(
    folder: Path, environment: Mapping[str, str]
) -> AsyncGenerator[tuple[Network, Mapping[str, str]]]:
    """The network to be in, and how the server is reached there."""
    if os.environ.get("LIVEKIT_URL"):
        yield (), {}
        return
    with network() as prefix:
        double = await Program.start(
            "tests.e2e.double",
            ADDRESS,
            prefix=prefix,
            environment={**environment, **DOUBLE_KEYS},
            log=folder / "double.log",
        )
        try:
            serving = await double.reports("serving")
            yield prefix, {**DOUBLE_KEYS, "LIVEKIT_URL": serving["url"]}
            await double.finish()
        finally:
            await double.kill()


def spoken(says: Sequence[str], replies: Sequence[str]) -> list[str]:
    """What a document must hold after these exchanges."""
    exchanges = zip(says, replies, strict=True)
    return [line for said, reply in exchanges for line in (f"Caller: {said}", f"Agent: {reply}")]
