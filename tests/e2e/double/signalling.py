"""One participant's WebSocket, from joining to leaving."""

from __future__ import annotations

import asyncio
import time

from aiohttp import WSMsgType, web
from livekit.api.access_token import Claims
from livekit.protocol import models, rtc

from .peers import Peers
from .rooms import Participant, Room, Rooms

__all__ = ["Signalling"]

SERVER = models.ServerInfo(version="1.9.0", protocol=16, edition=models.ServerInfo.Edition.Standard)

SUBSCRIBED_AFTER = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds after which a new track is said to be subscribed. The client drops it before it knows its own track."""


class Signalling:
    """Serves participants.

    Args:
        rooms: Where they meet.
        lost_after: Seconds after which a participant whose line is dead is taken to have gone.
    """

    def __init__(self, rooms: Rooms, *, lost_after: float) -> None:
        self._rooms = rooms
        self._lost_after = lost_after

    async def serve(self, request: web.Request, claims: Claims) -> web.WebSocketResponse:
        grants = claims.video
        if grants is None or not grants.room_join or not grants.room:
            raise web.HTTPForbidden(text="the token does not let its holder into a room")
        if request.query.get("reconnect") == "1":
            raise web.HTTPNotImplemented(text="this double resumes no connection")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        participant = Participant(
            claims, socket, client_protocol=int(request.query.get("client_protocol") or 0)
        )
        room = self._rooms.open(grants.room)
        participant.peers = Peers(
            received=lambda data, label: room.deliver(data, label, sender=participant),
            connected=lambda: self._active(room, participant),
        )
        room.joins(participant, SERVER)
        speaking = asyncio.ensure_future(participant.speak())
        try:
            participant.signal(rtc.SignalResponse(offer=await participant.peers.offer()))
            await self._listen(room, participant)
            # The line broke without a word. The real server, too, waits whether the client comes back.
            if not participant.left:
                await asyncio.sleep(self._lost_after)
            room.leaves(participant, models.DisconnectReason.CONNECTION_TIMEOUT)
            await speaking
        finally:
            room.leaves(participant, models.DisconnectReason.CONNECTION_TIMEOUT)
            speaking.cancel()
            await participant.peers.close()
        return socket

    def _active(self, room: Room, participant: Participant) -> None:
        if not participant.left:
            participant.info.state = models.ParticipantInfo.State.ACTIVE
            room.tell_of(participant)

    async def _listen(self, room: Room, participant: Participant) -> None:
        async for message in participant.socket:
            if message.type is not WSMsgType.BINARY:
                continue
            request = rtc.SignalRequest.FromString(message.data)
            if request.HasField("leave"):
                room.leaves(participant, models.DisconnectReason.CLIENT_INITIATED)
                return
            await self._handle(request, room, participant)

    async def _handle(self, request: rtc.SignalRequest, room: Room, participant: Participant) -> None:
        peers = participant.peers
        kind = request.WhichOneof("message")
        if kind == "offer":
            participant.signal(rtc.SignalResponse(answer=await peers.answer(request.offer)))
        elif kind == "answer":
            await peers.answered(request.answer)
        elif kind == "trickle":
            await peers.trickle(request.trickle)
        elif kind == "add_track":
            self._publish(request.add_track, participant)
        elif kind == "update_metadata":
            self._change(request.update_metadata, room, participant)
        elif kind == "ping":
            participant.signal(rtc.SignalResponse(pong=_milliseconds()))
        elif kind == "ping_req":
            pong = rtc.Pong(last_ping_timestamp=request.ping_req.timestamp, timestamp=_milliseconds())
            participant.signal(rtc.SignalResponse(pong_resp=pong))

    def _publish(self, request: rtc.AddTrackRequest, participant: Participant) -> None:
        """Accept a track and say that somebody listens to it. Nobody does."""
        track = models.TrackInfo(
            sid=f"TR_{participant.info.sid[3:]}_{len(participant.info.tracks)}",
            type=request.type,
            name=request.name,
            source=request.source,
            muted=request.muted,
            mime_type="audio/opus",
        )
        published = rtc.TrackPublishedResponse(cid=request.cid, track=track)
        participant.signal(rtc.SignalResponse(track_published=published))
        subscribed = rtc.SignalResponse(track_subscribed=rtc.TrackSubscribed(track_sid=track.sid))
        # Without media nothing shows when the client is ready to hear it. Once more does no harm.
        for delay in SUBSCRIBED_AFTER:
            asyncio.get_running_loop().call_later(delay, participant.signal, subscribed)

    def _change(self, request: rtc.UpdateParticipantMetadata, room: Room, participant: Participant) -> None:
        """Change a participant's own name, metadata or attributes, if its token lets it."""
        reason = rtc.RequestResponse.Reason.OK
        if participant.info.permission.can_update_metadata:
            for name, value in request.attributes.items():
                if value:
                    participant.info.attributes[name] = value
                else:
                    participant.info.attributes.pop(name, None)
            participant.info.metadata = request.metadata or participant.info.metadata
            participant.info.name = request.name or participant.info.name
            room.tell_of(participant)
        else:
            reason = rtc.RequestResponse.Reason.NOT_ALLOWED
        response = rtc.RequestResponse(request_id=request.request_id, reason=reason)
        participant.signal(rtc.SignalResponse(request_response=response))


def _milliseconds() -> int:
    return int(time.time() * 1000)
