"""Doubles for testing voice agents with memory: no network, no key, no model, no sleeping.

`ScriptedStore` stands where Supermemory stands, `FaultyTransport` on the wire to it, `ScriptedLLM` and
`ScriptedRealtimeModel` where the model stands. All record what reached them. `TextCaller` makes a call by text,
`ScriptedCaller` one by voice, with timing. `expect` says what the agent knew when it replied, `stored` what was
written. Everything runs on the loop's clock; with `virtual_time` no test waits.

The package brings a pytest plugin with the fixtures `supermemory_store`, `supermemory_clock` and
`supermemory_local` (see `pytest --fixtures`).
"""

from .caller import ScriptedCaller
from .clock import VirtualClock, virtual_time
from .expectations import Expectation, Request, expect, stored
from .llm import Reply, ReplyFunction, ScriptedLLM, SeenContext, SeenItem, ToolCall, snapshot
from .realtime import RealtimeReply, RealtimeRequest, ScriptedRealtimeModel, ScriptedRealtimeSession
from .script import Answer, Fail, Hang, Step, UnexpectedCall, Work
from .speech import Loudspeaker, Microphone, ScriptedSTT, ScriptedTTS, ScriptedVAD, Subtitles
from .store import Operation, ScriptedStore, StoreCall
from .text_caller import Answering, TextCaller
from .transport import FaultyTransport, Reset, Respond, WireRequest, WireStep

__all__ = [
    "Answer",
    "Answering",
    "Expectation",
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
    "Request",
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
    "TextCaller",
    "ToolCall",
    "UnexpectedCall",
    "VirtualClock",
    "WireRequest",
    "WireStep",
    "Work",
    "expect",
    "snapshot",
    "stored",
    "virtual_time",
]
