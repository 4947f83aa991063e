"""Agent workers and the jobs they are given."""

from __future__ import annotations

import asyncio
import itertools
import logging

from aiohttp import WSMsgType, web
from livekit import api
from livekit.api.access_token import Claims
from livekit.protocol import agent, agent_dispatch

from .rooms import Room
from .signalling import SERVER

__all__ = ["Workers"]

PATIENCE = 20.0
"""Seconds that a dispatch waits for a worker which takes it."""

logger = logging.getLogger(__name__)

_numbers = itertools.count(1)


class Workers:
    """The connected workers. Jobs go to those that registered under the agent name of the dispatch, in turn."""

    def __init__(self, *, key: str, secret: str) -> None:
        self._key = key
        self._secret = secret
        self._workers: dict[str, list[web.WebSocketResponse]] = {}
        self._changed = asyncio.Condition()
        self._answers: dict[str, asyncio.Future[agent.AvailabilityResponse]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.Request, claims: Claims) -> web.WebSocketResponse:
        if claims.video is None or not claims.video.agent:
            raise web.HTTPForbidden(text="the token does not let its holder be a worker")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        name: str | None = None
        try:
            async for message in socket:
                if message.type is not WSMsgType.BINARY:
                    continue
                said = agent.WorkerMessage.FromString(message.data)
                if said.HasField("register"):
                    name = said.register.agent_name
                    await self._registered(name, socket)
                elif said.HasField("availability"):
                    answer = self._answers.get(said.availability.job_id)
                    if answer is not None and not answer.done():
                        answer.set_result(said.availability)
                elif said.HasField("ping"):
                    pong = agent.WorkerPong(last_timestamp=said.ping.timestamp, timestamp=said.ping.timestamp)
                    await socket.send_bytes(agent.ServerMessage(pong=pong).SerializeToString())
        finally:
            if name is not None:
                self._workers[name].remove(socket)
        return socket

    async def _registered(self, name: str, socket: web.WebSocketResponse) -> None:
        response = agent.RegisterWorkerResponse(worker_id=f"AW_{next(_numbers):08}", server_info=SERVER)
        await socket.send_bytes(agent.ServerMessage(register=response).SerializeToString())
        async with self._changed:
            self._workers.setdefault(name, []).append(socket)
            self._changed.notify_all()

    def dispatch(
        self, request: agent_dispatch.CreateAgentDispatchRequest, room: Room
    ) -> agent_dispatch.AgentDispatch:
        """Send an agent into a room; it is looked for in the background."""
        dispatch = agent_dispatch.AgentDispatch(
            id=f"AD_{next(_numbers):08}",
            agent_name=request.agent_name,
            room=request.room,
            metadata=request.metadata,
        )
        task = asyncio.ensure_future(asyncio.wait_for(self._assign(dispatch, room), PATIENCE))
        self._tasks.add(task)
        task.add_done_callback(self._assigned)
        return dispatch

    def _assigned(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("No agent was sent into a room: %r", error)

    async def _assign(self, dispatch: agent_dispatch.AgentDispatch, room: Room) -> None:
        job = agent.Job(
            id=f"AJ_{next(_numbers):08}",
            dispatch_id=dispatch.id,
            type=agent.JobType.JT_ROOM,
            room=room.info,
            metadata=dispatch.metadata,
            agent_name=dispatch.agent_name,
        )
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._workers.get(dispatch.agent_name)))
            worker = self._workers[dispatch.agent_name][0]
            self._workers[dispatch.agent_name].append(self._workers[dispatch.agent_name].pop(0))
            answer = self._answers[job.id] = asyncio.get_running_loop().create_future()
            question = agent.AvailabilityRequest(job=job)
            await worker.send_bytes(agent.ServerMessage(availability=question).SerializeToString())
            available = await answer
            if available.available:
                assignment = agent.JobAssignment(job=job, token=self._token(available, room))
                await worker.send_bytes(agent.ServerMessage(assignment=assignment).SerializeToString())
                return
            await asyncio.sleep(0.5)

    def _token(self, available: agent.AvailabilityResponse, room: Room) -> str:
        grants = api.VideoGrants(
            room_join=True, room=room.info.name, agent=True, can_update_own_metadata=True
        )
        return (
            api.AccessToken(self._key, self._secret)
            .with_identity(available.participant_identity)
            .with_name(available.participant_name)
            .with_metadata(available.participant_metadata)
            .with_attributes(dict(available.participant_attributes))
            .with_kind("agent")
            .with_grants(grants)
            .to_jwt()
        )
