"""Which reply of the agent is being made, or committed, at this moment.

A reply is known by its `SpeechHandle`, from its first words to those after its tools. LiveKit hands the handle to
function tools and keeps it for them in a context variable of each reply's task, whose name is not public. Without it
`session.current_speech` has to do, which tells what is being spoken, not what is being made.
"""

from __future__ import annotations

import importlib
from contextvars import ContextVar
from typing import Any, cast

from livekit.agents.voice import SpeechHandle

__all__ = ["reply_in_progress"]


def reply_in_progress() -> SpeechHandle | None:
    """The handle of the reply in whose task this runs; None in any other task."""
    return _variable.get(None) if _variable is not None else None


def _find() -> ContextVar[SpeechHandle] | None:
    try:
        module = cast(Any, importlib.import_module("livekit.agents.voice.agent_activity"))
        variable: object = module._SpeechHandleContextVar
    except (ImportError, AttributeError):
        return None
    return cast("ContextVar[SpeechHandle]", variable) if isinstance(variable, ContextVar) else None


_variable = _find()
