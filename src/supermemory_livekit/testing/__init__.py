"""Doubles for testing voice agents with memory: no network, no key, no model, no sleeping.

`ScriptedStore` stands where Supermemory stands, `FaultyTransport` on the wire to it, `ScriptedLLM` and
`ScriptedRealtimeModel` where the model stands. All record what reached them. `ScriptedCaller` makes a call
with timing. Everything runs on the loop's clock, so a test with a virtual clock need not wait.
"""

from .caller import ScriptedCaller
from .llm import Reply, ReplyFunction, ScriptedLLM, SeenContext, SeenItem, ToolCall, snapshot
from .realtime import RealtimeReply, RealtimeRequest, ScriptedRealtimeModel, ScriptedRealtimeSession
from .script import Answer, Fail, Hang, Step, UnexpectedCall, Work
from .speech import Loudspeaker, Microphone, ScriptedSTT, ScriptedTTS, ScriptedVAD, Subtitles
from .store import Operation, ScriptedStore, StoreCall
from .transport import FaultyTransport, Reset, Respond, WireRequest, WireStep

__all__ = [
    "Answer",
    "Fail",
    "FaultyTransport",
    "Hang",
    "Loudspeaker",
    "Microphone",
    "Operation",
    "RealtimeReply",
    "RealtimeRequest",
    "Reply",
    "ReplyFunction",
    "Reset",
    "Respond",
    "ScriptedCaller",
    "ScriptedLLM",
    "ScriptedRealtimeModel",
    "ScriptedRealtimeSession",
    "ScriptedSTT",
    "ScriptedStore",
    "ScriptedTTS",
    "ScriptedVAD",
    "SeenContext",
    "SeenItem",
    "Step",
    "StoreCall",
    "Subtitles",
    "ToolCall",
    "UnexpectedCall",
    "WireRequest",
    "WireStep",
    "Work",
    "snapshot",
]
