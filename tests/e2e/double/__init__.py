"""A double of a LiveKit server: rooms without sound. It is not LiveKit.

The real client (`livekit.rtc`), the real worker (`AgentServer`) and the real server API client (`livekit.api`) connect
to it unmodified. It speaks as much of their protocols as a call by text takes:

- signalling: a WebSocket with protobuf messages, a publisher and a subscriber peer connection, resumed by nobody;
- data: packets of one participant go to the others over WebRTC data channels, or to those they name;
- participants: identity, attributes and permissions from the access token, changes of attributes, reasons of departure;
- workers: registration, dispatch with metadata, availability and assignment;
- the server API: CreateRoom, DeleteRoom, ListParticipants, RemoveParticipant, CreateDispatch.

It is in a hurry: a room without callers closes four times as fast as it says, and a line that went dead is given up
after one second.

What it does not do: carry audio or video (a published track is accepted, said to be subscribed, and goes nowhere),
resume a dropped connection, SIP, ingress, egress, webhooks, regions, the single peer connection of newer clients.
What a test shows here it shows of this package and of LiveKit's Python side, not of LiveKit's server.

    python -m tests.e2e.double ADDRESS

serves on a free port of this address, names it on stdout as `{"event": "serving", "url": …}` and ends with stdin. The
address must not be a loopback one: WebRTC offers no candidates for those.
"""
