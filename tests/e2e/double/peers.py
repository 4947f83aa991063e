"""The WebRTC side of one participant: two peer connections that carry data packets and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.sdp import candidate_from_sdp
from livekit.protocol import rtc

__all__ = ["LABELS", "Peers"]

LABELS = ("_reliable", "_lossy")
"""Names of the two data channels of a LiveKit peer connection. Source: LiveKit's client protocol."""


class Peers:
    """The client offers on the publisher connection, this side on the subscriber connection.

    Args:
        received: Called with each packet of the client, and the label of the channel it came by.
        connected: Called once when the client can be sent packets.
    """

    def __init__(self, *, received: Callable[[bytes, str], None], connected: Callable[[], None]) -> None:
        # The library's default configuration asks a server on the internet for this host's address.
        self._publisher = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._subscriber = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._waiting: dict[str, list[bytes]] = {label: [] for label in LABELS}
        self._channels: dict[str, RTCDataChannel] = {}

        @self._publisher.on("datachannel")
        def _(channel: RTCDataChannel) -> None:
            def message(data: bytes) -> None:
                received(data, channel.label)

            channel.on("message", message)

        @self._subscriber.on("connectionstatechange")
        def _() -> None:
            if self._subscriber.connectionState == "connected":
                connected()

    async def offer(self) -> rtc.SessionDescription:
        """The offer of the subscriber connection."""
        for label in LABELS:
            reliable = label == "_reliable"
            channel = self._subscriber.createDataChannel(
                label, ordered=reliable, maxRetransmits=None if reliable else 0
            )
            channel.on("open", lambda label=label: self._send_waiting(label))
            self._channels[label] = channel
        await self._subscriber.setLocalDescription(await self._subscriber.createOffer())
        return _outgoing(self._subscriber)

    async def answered(self, description: rtc.SessionDescription) -> None:
        await self._subscriber.setRemoteDescription(_incoming(description))

    async def answer(self, description: rtc.SessionDescription) -> rtc.SessionDescription:
        """The answer to an offer of the publisher connection. Media is agreed on and never flows."""
        await self._publisher.setRemoteDescription(_incoming(description))
        for transceiver in self._publisher.getTransceivers():
            transceiver.direction = "inactive"
        await self._publisher.setLocalDescription(await self._publisher.createAnswer())
        answer = _outgoing(self._publisher)
        answer.id = description.id
        return answer

    async def trickle(self, request: rtc.TrickleRequest) -> None:
        """One network candidate of the client."""
        init: dict[str, Any] = json.loads(request.candidateInit)
        if not init.get("candidate"):
            return
        candidate = candidate_from_sdp(init["candidate"].partition(":")[2])
        candidate.sdpMid = init.get("sdpMid")
        candidate.sdpMLineIndex = init.get("sdpMLineIndex")
        to_publisher = request.target == rtc.SignalTarget.PUBLISHER
        await (self._publisher if to_publisher else self._subscriber).addIceCandidate(candidate)

    def send(self, packet: bytes, label: str) -> None:
        """Send a packet, or keep it until the channel is open."""
        self._waiting[label].append(packet)
        self._send_waiting(label)

    def _send_waiting(self, label: str) -> None:
        channel = self._channels.get(label)
        if channel is not None and channel.readyState == "open":
            for packet in self._waiting[label]:
                channel.send(packet)
            self._waiting[label] = []

    async def close(self) -> None:
        await self._publisher.close()
        await self._subscriber.close()


def _incoming(description: rtc.SessionDescription) -> RTCSessionDescription:
    return RTCSessionDescription(sdp=description.sdp, type=description.type)


def _outgoing(connection: RTCPeerConnection) -> rtc.SessionDescription:
    local = connection.localDescription
    return rtc.SessionDescription(type=local.type, sdp=local.sdp)
