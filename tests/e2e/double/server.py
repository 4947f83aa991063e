"""The routes of the double: participants, workers, and the part of the server API that tests use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import jwt
from aiohttp import web
from google.protobuf.message import Message
from livekit import api
from livekit.api.access_token import Claims
from livekit.protocol import agent_dispatch, models, room

from .rooms import Rooms
from .signalling import Signalling
from .workers import Workers

__all__ = ["make_app"]

LOST_AFTER = 1.0
"""Seconds; the real server waits longer, since networks break for longer."""

Request = TypeVar("Request", bound=Message)


def make_app(*, key: str, secret: str, lost_after: float = LOST_AFTER) -> web.Application:
    """The double as an application. Tokens signed with `secret` open it."""
    verifier = api.TokenVerifier(key, secret)
    rooms = Rooms()
    signalling = Signalling(rooms, lost_after=lost_after)
    workers = Workers(key=key, secret=secret)

    def claims(request: web.Request) -> Claims:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            return verifier.verify(bearer or request.query.get("access_token", ""))
        except jwt.InvalidTokenError:
            raise web.HTTPUnauthorized(text="no valid token") from None

    async def participant(request: web.Request) -> web.StreamResponse:
        return await signalling.serve(request, claims(request))

    async def worker(request: web.Request) -> web.StreamResponse:
        return await workers.serve(request, claims(request))

    async def validate(request: web.Request) -> web.Response:
        claims(request)
        return web.Response(text="success")

    async def create_room(said: room.CreateRoomRequest) -> Message:
        return rooms.open(said.name, departure_timeout=said.departure_timeout).info

    async def delete_room(said: room.DeleteRoomRequest) -> Message:
        if (found := rooms.get(said.room)) is None:
            raise web.HTTPNotFound
        found.ends(models.DisconnectReason.ROOM_DELETED)
        return room.DeleteRoomResponse()

    async def list_participants(said: room.ListParticipantsRequest) -> Message:
        found = rooms.get(said.room)
        inside = [] if found is None else [one.info for one in found.participants.values()]
        return room.ListParticipantsResponse(participants=inside)

    async def remove_participant(said: room.RoomParticipantIdentity) -> Message:
        found = rooms.get(said.room)
        if found is None or said.identity not in found.participants:
            raise web.HTTPNotFound
        found.leaves(found.participants[said.identity], models.DisconnectReason.PARTICIPANT_REMOVED)
        return room.RemoveParticipantResponse()

    async def create_dispatch(said: agent_dispatch.CreateAgentDispatchRequest) -> Message:
        return workers.dispatch(said, rooms.open(said.room))

    def twirp(
        kind: type[Request], answer: Callable[[Request], Awaitable[Message]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            claims(request)
            response = await answer(kind.FromString(await request.read()))
            return web.Response(body=response.SerializeToString(), content_type="application/protobuf")

        return handle

    app = web.Application()
    app.router.add_get("/rtc", participant)
    app.router.add_get("/rtc/validate", validate)
    app.router.add_get("/agent", worker)
    for path, handler in {
        "RoomService/CreateRoom": twirp(room.CreateRoomRequest, create_room),
        "RoomService/DeleteRoom": twirp(room.DeleteRoomRequest, delete_room),
        "RoomService/ListParticipants": twirp(room.ListParticipantsRequest, list_participants),
        "RoomService/RemoveParticipant": twirp(room.RoomParticipantIdentity, remove_participant),
        "AgentDispatchService/CreateDispatch": twirp(
            agent_dispatch.CreateAgentDispatchRequest, create_dispatch
        ),
    }.items():
        app.router.add_post(f"/twirp/livekit.{path}", handler)
    return app
