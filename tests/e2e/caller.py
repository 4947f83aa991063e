"""A caller with LiveKit's real client, who types, and hears by reading.

    python -m tests.e2e.caller

takes orders on stdin and reports on stdout, one JSON object a line. The first order is a `Ring`; then

- `{"do": "say", "text": …}`: reports `hears` with the words so far as the reply comes, and `reply` with all of it
  once the agent listens again;
- `{"do": "hang up"}`;
- `{"do": "be removed"}`, `{"do": "delete room"}`: what a backend does to a caller, over the server API.

`state` is reported whenever the agent shows another one, `ready` when it listens for the first time, and `left` when
the caller is out of the room.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from livekit import api, rtc

__all__ = ["Ring"]

STATE = "lk.agent.state"
"""The attribute by which an agent shows what it does. Source: LiveKit agents, `ATTRIBUTE_AGENT_STATE`."""


@dataclass(frozen=True)
class Ring:
    """Who rings, and how the backend has set the call up. URL and keys are in the environment."""

    room: str
    identity: str
    agent: str
    """Name of the agent to be dispatched. Blank when one is there already, since this caller was there before: then
    wait until the server has noticed that they are gone."""
    metadata: str = ""
    """Metadata of the job."""
    attributes: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    departure_timeout: int = 1
    """Seconds that the room stays open without a caller."""


def report(event: str, **more: Any) -> None:
    line = json.dumps({"event": event, **more}) + "\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    # Also to the log, which a failing test shows.
    sys.stderr.write(line)


class Caller:
    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._room = rtc.Room()
        self._states: list[str] = []
        self._changed = asyncio.Event()
        self._reply: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def join(self) -> None:
        ring = self._ring
        self._room.on("participant_connected", self._sees)
        self._room.on("participant_attributes_changed", self._sees_change)
        self._room.on("disconnected", self._left)
        self._room.register_text_stream_handler("lk.transcription", self._hears)
        token = (
            api.AccessToken()
            .with_identity(ring.identity)
            .with_attributes(dict(ring.attributes))
            .with_grants(api.VideoGrants(room_join=True, room=ring.room))
        )
        async with api.LiveKitAPI() as livekit:
            if ring.agent:
                await livekit.room.create_room(
                    api.CreateRoomRequest(name=ring.room, departure_timeout=ring.departure_timeout)
                )
                await livekit.agent_dispatch.create_dispatch(
                    api.CreateAgentDispatchRequest(
                        agent_name=ring.agent, room=ring.room, metadata=ring.metadata
                    )
                )
            else:
                await self._gone_before(livekit)
        await self._room.connect(os.environ["LIVEKIT_URL"], token.to_jwt())
        for participant in self._room.remote_participants.values():
            self._sees(participant)
        await self._until(lambda: self._states[-1:] == ["listening"])
        report("ready")

    async def _gone_before(self, livekit: api.LiveKitAPI) -> None:
        request = api.ListParticipantsRequest(room=self._ring.room)
        while True:
            there = (await livekit.room.list_participants(request)).participants
            if all(participant.identity != self._ring.identity for participant in there):
                return
            await asyncio.sleep(0.1)

    async def obey(self, order: Mapping[str, str]) -> bool:
        """Do what is asked. False when the call is over."""
        if order["do"] == "say":
            self._states, self._reply = [], None
            await self._room.local_participant.send_text(order["text"], topic="lk.chat")
            self._start(self._await_reply())
            return True
        if order["do"] == "hang up":
            await self._room.disconnect()
            return False
        async with api.LiveKitAPI() as livekit:
            if order["do"] == "delete room":
                await livekit.room.delete_room(api.DeleteRoomRequest(room=self._ring.room))
            else:
                assert order["do"] == "be removed", order
                await livekit.room.remove_participant(
                    api.RoomParticipantIdentity(room=self._ring.room, identity=self._ring.identity)
                )
        return True

    async def _await_reply(self) -> None:
        # The words come by another way than the state, so either may be first.
        await self._until(lambda: self._reply is not None and self._states[-1:] == ["listening"])
        report("reply", text=self._reply)

    def _left(self, reason: rtc.DisconnectReason.ValueType) -> None:
        report("left", reason=rtc.DisconnectReason.Name(reason))

    def _sees_change(self, changed: Mapping[str, str], participant: rtc.RemoteParticipant) -> None:
        self._sees(participant)

    def _sees(self, participant: rtc.RemoteParticipant) -> None:
        state = participant.attributes.get(STATE)
        if state and self._states[-1:] != [state]:
            self._states.append(state)
            report("state", state=state)
            self._changed.set()

    def _hears(self, reader: rtc.TextStreamReader, identity: str) -> None:
        self._start(self._listen(reader))

    async def _listen(self, reader: rtc.TextStreamReader) -> None:
        words = ""
        async for part in reader:
            words += part
            report("hears", text=words)
        self._reply = words
        self._changed.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()


async def main() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    caller = Caller(Ring(**json.loads(await lines.readline())))
    await caller.join()
    async for line in lines:
        if not await caller.obey(json.loads(line)):
            break


if __name__ == "__main__":
    asyncio.run(main())
