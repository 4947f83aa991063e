"""Doubles for testing voice agents with memory: no network, no key, no model, no sleeping.

`ScriptedStore` stands where Supermemory stands, `ScriptedLLM` where the language model stands. Both record
what reached them. Everything runs on the loop's clock, so a test with a virtual clock need not wait.
"""

from .llm import Reply, ReplyFunction, ScriptedLLM, SeenContext, SeenItem, ToolCall, snapshot
from .script import Answer, Fail, Hang, Step, UnexpectedCall, Work
from .store import Operation, ScriptedStore, StoreCall

__all__ = [
    "Answer",
    "Fail",
    "Hang",
    "Operation",
    "Reply",
    "ReplyFunction",
    "ScriptedLLM",
    "ScriptedStore",
    "SeenContext",
    "SeenItem",
    "Step",
    "StoreCall",
    "ToolCall",
    "UnexpectedCall",
    "Work",
    "snapshot",
]
