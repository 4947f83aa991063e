"""Notices about a set-up that works without an error and yet does not do what it is there for."""

from __future__ import annotations

import logging

from supermemory_livekit.telemetry import logger

from . import realtime
from .line import Line

__all__ = ["Notices", "Wiring"]

SILENT_REPLIES = 3
"""Replies of a realtime model without one word of the caller after which transcription is taken to be off."""


class Notices:
    """Log lines that are said once in a call."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say_once(self, key: str, message: str, *args: object, level: int = logging.WARNING) -> None:
        if key not in self._said:
            self._said.add(key)
            logger.log(level, message, *args)


class Wiring:
    """Watches whether recall is asked for, and whether the caller's words arrive."""

    def __init__(self, line: Line, notices: Notices) -> None:
        self._line = line
        self._notices = notices
        self.wants_recall = False
        """Somebody took the tools or asked for recall, so replies without recall are a mistake."""
        self._recalled_for: str | None = None
        self._last_user_message: str | None = None
        self._silent_replies = 0

    def recall_asked(self, message_id: str | None) -> None:
        """Recall was asked for, for this user message if there is one."""
        self.wants_recall = True
        self._recalled_for = message_id or self._recalled_for

    def was_recalled(self, message_id: str) -> bool:
        return message_id == self._recalled_for

    def caller_spoke(self, message_id: str) -> None:
        self._last_user_message = message_id

    def agent_replied(self) -> None:
        """Say once when a reply went out without recall, or when a realtime model never reports the caller."""
        agent, session = self._line.agent()
        if agent is None:
            return
        if realtime.is_realtime(agent, session):
            self._check_transcription()
        else:
            self._check_recall()

    def _check_recall(self) -> None:
        message = self._last_user_message
        if message is not None and message != self._recalled_for and self.wants_recall:
            self._notices.say_once(
                "recall",
                "An agent replied without recall: its llm_node does not call `await memory.enrich(chat_ctx)` (a "
                "subclass of SupermemoryAgent that overrides llm_node calls super().llm_node)",
            )

    def _check_transcription(self) -> None:
        self._silent_replies = 0 if self._last_user_message is not None else self._silent_replies + 1
        if self._silent_replies == SILENT_REPLIES:
            self._notices.say_once(
                "transcription",
                "The realtime model reports no words of the caller: only the agent's are stored. Switch input "
                "transcription on in the model's options, or give the AgentSession an stt",
            )
