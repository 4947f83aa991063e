"""Rooms and who is in them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

from aiohttp import web
from livekit import api
from livekit.api.access_token import Claims
from livekit.protocol import models, rtc

from .peers import Peers

__all__ = ["KINDS", "Participant", "Room", "Rooms"]

KINDS = {
    "": models.ParticipantInfo.Kind.STANDARD,
    "standard": models.ParticipantInfo.Kind.STANDARD,
    "sip": models.ParticipantInfo.Kind.SIP,
    "agent": models.ParticipantInfo.Kind.AGENT,
}

DEPARTURE_TIMEOUT = 20
"""Seconds that a room outlives its last caller, as on LiveKit's server, unless CreateRoom says otherwise."""

PACE = 4
"""How many times as fast as on LiveKit's server an empty room closes."""

_numbers = itertools.count(1)


class Participant:
    """Somebody in a room: what the others see, and the two ways to reach them."""

    peers: Peers

    def __init__(self, claims: Claims, socket: web.WebSocketResponse, *, client_protocol: int) -> None:
        grants = claims.video or api.VideoGrants()
        now = time.time()
        self.socket = socket
        self.left = False
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.info = models.ParticipantInfo(
            sid=f"PA_{next(_numbers):08}",
            identity=claims.identity,
            name=claims.name,
            metadata=claims.metadata,
            attributes=claims.attributes or {},
            kind=KINDS[claims.kind],
            state=models.ParticipantInfo.State.JOINED,
            joined_at=int(now),
            joined_at_ms=int(now * 1000),
            client_protocol=client_protocol,
            permission=models.ParticipantPermission(
                can_subscribe=grants.can_subscribe,
                can_publish=grants.can_publish,
                can_publish_data=grants.can_publish_data,
                can_update_metadata=bool(grants.can_update_own_metadata),
                agent=bool(grants.agent),
            ),
        )

    @property
    def is_agent(self) -> bool:
        return self.info.kind == models.ParticipantInfo.Kind.AGENT

    def signal(self, response: rtc.SignalResponse) -> None:
        """Say something to this participant, after what was said before."""
        self._outbox.put_nowait(response.SerializeToString())

    def part(self) -> None:
        """Close the line once everything is said."""
        self._outbox.put_nowait(None)

    async def speak(self) -> None:
        """Send what is signalled until `part`, or until the line is dead."""
        while (message := await self._outbox.get()) is not None:
            try:
                await self.socket.send_bytes(message)
            except ConnectionError:
                return
        await self.socket.close()


class Room:
    """One room. It closes `departure_timeout` seconds after the last participant who is no agent has
    left, divided by `PACE`."""

    def __init__(self, name: str, *, departure_timeout: int, closed: Callable[[Room], None]) -> None:
        now = time.time()
        self.info = models.Room(
            sid=f"RM_{next(_numbers):08}",
            name=name,
            departure_timeout=departure_timeout,
            creation_time=int(now),
            creation_time_ms=int(now * 1000),
        )
        self.participants: dict[str, Participant] = {}
        self._closed = closed
        self._closing: asyncio.TimerHandle | None = None

    def joins(self, participant: Participant, server: models.ServerInfo) -> None:
        """Let somebody in. One who is in already under this identity is put out."""
        if (before := self.participants.get(participant.info.identity)) is not None:
            self.leaves(before, models.DisconnectReason.DUPLICATE_IDENTITY)
        if not participant.is_agent:
            self._keep_open()
        # Nothing may reach a client before this, and no change of the others may be missed after it.
        join = rtc.JoinResponse(
            room=self.info,
            participant=participant.info,
            other_participants=[other.info for other in self.participants.values()],
            server_info=server,
            server_version=server.version,
            subscriber_primary=True,
            ping_interval=5,
            ping_timeout=15,
        )
        participant.signal(rtc.SignalResponse(join=join))
        self.participants[participant.info.identity] = participant
        self.tell_of(participant)

    def leaves(self, participant: Participant, reason: models.DisconnectReason) -> None:
        """Let somebody go, or put them out, and tell the others why. Once for each participant."""
        if participant.left:
            return
        participant.left = True
        self.participants.pop(participant.info.identity, None)
        participant.info.state = models.ParticipantInfo.State.DISCONNECTED
        participant.info.disconnect_reason = reason
        if reason != models.DisconnectReason.CLIENT_INITIATED:
            leave = rtc.LeaveRequest(reason=reason, action=rtc.LeaveRequest.Action.DISCONNECT)
            participant.signal(rtc.SignalResponse(leave=leave))
        participant.part()
        self.tell_of(participant)
        if all(other.is_agent for other in self.participants.values()):
            self._keep_open()
            self._closing = asyncio.get_running_loop().call_later(
                self.info.departure_timeout / PACE, self.ends, models.DisconnectReason.ROOM_CLOSED
            )

    def ends(self, reason: models.DisconnectReason) -> None:
        """Put everybody out and close."""
        # Callers first: their agents learn the reason before they are put out themselves.
        for participant in sorted(self.participants.values(), key=lambda one: one.is_agent):
            self.leaves(participant, reason)
        self._keep_open()
        self._closed(self)

    def _keep_open(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def tell_of(self, participant: Participant) -> None:
        """Tell everybody how a participant is now."""
        update = rtc.SignalResponse(update=rtc.ParticipantUpdate(participants=[participant.info]))
        for other in self.participants.values():
            other.signal(update)

    def deliver(self, data: bytes, label: str, *, sender: Participant) -> None:
        """Pass a packet on to those it names, or to all others, marked with its sender."""
        packet = models.DataPacket.FromString(data)
        packet.participant_identity = sender.info.identity
        packet.participant_sid = sender.info.sid
        if packet.HasField("user"):
            packet.user.participant_identity = sender.info.identity
            packet.user.participant_sid = sender.info.sid
        wanted = set(packet.destination_identities)
        for identity, other in self.participants.items():
            if other is not sender and (not wanted or identity in wanted):
                other.peers.send(packet.SerializeToString(), label)


class Rooms:
    """All rooms, by name."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}

    def get(self, name: str) -> Room | None:
        return self._rooms.get(name)

    def open(self, name: str, *, departure_timeout: int = 0) -> Room:
        """The room of this name; a new one if there is none."""
        if name not in self._rooms:
            self._rooms[name] = Room(
                name, departure_timeout=departure_timeout or DEPARTURE_TIMEOUT, closed=self._forget
            )
        return self._rooms[name]

    def _forget(self, room: Room) -> None:
        self._rooms.pop(room.info.name, None)
