"""What is said in the attached sessions: whose words they are, whether they may be kept, and where they go.

LiveKit commits a turn after it was spoken, and an answer at its end. Until then another caller may be bound, another
participant be on the line, and what the caller allows may have changed. So what decides is noted while words are heard
and when a reply to them is begun. docs/decisions/0019-consent.md has the rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from livekit.agents import AgentSession, llm

from supermemory_livekit.background import Background
from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.capture.consent import Consent
from supermemory_livekit.capture.intake import Intake, Said
from supermemory_livekit.capture.memory_talk import MemoryTalk
from supermemory_livekit.capture.redaction import Redaction
from supermemory_livekit.recall.recall import Recall
from supermemory_livekit.recall.render import strip_fenced
from supermemory_livekit.scope import Scope
from supermemory_livekit.telemetry import Stats, logger
from supermemory_livekit.transcript import Role, is_blank

from . import realtime
from .binding import Binding, SamePerson
from .line import Line
from .wiring import Notices, Wiring

__all__ = ["TRANSCRIPT_WAIT", "Conversation", "guarded"]

TRANSCRIPT_WAIT = 1.0
"""Seconds a realtime model gets to report the words that its reply answers."""


class Conversation:
    """The turns of one call, from LiveKit's events to the buffer.

    Args:
        goes_on: Called with each turn: the end of the call is still to come.
        agent_changed: Called when a session hands over to another agent.
        committed: Called with each message of the caller that is committed.
    """

    def __init__(
        self,
        *,
        binding: Binding,
        line: Line,
        consent: Consent,
        redaction: Redaction,
        capture: Capture,
        recall: Recall,
        wiring: Wiring,
        notices: Notices,
        background: Background,
        stats: Stats,
        goes_on: Callable[[], None],
        agent_changed: Callable[[], None],
        committed: Callable[[llm.ChatMessage], None],
    ) -> None:
        self._binding = binding
        self._line = line
        self._consent = consent
        self._redaction = redaction
        self._capture = capture
        self._recall = recall
        self._wiring = wiring
        self._notices = notices
        self._background = background
        self._stats = stats
        self._goes_on = goes_on
        self._agent_changed = agent_changed
        self._committed = committed
        self._memory_talk = MemoryTalk()
        self.intake = Intake(redaction, stats, deliver=self._deliver, passed=self._passed)
        self._begun_under: dict[str, Scope] = {}
        """By id of a message that is not committed yet, whose words it is, as known when a reply to it was begun."""
        self._committed_last: tuple[str, str | None] = ("", None)
        """Id of the message of the caller that was committed last, and who was listened to then."""
        self._finishing: Scope | None = None
        """Whose answer the agent gives though another caller is bound by now; it is committed at its end."""

    def listen(self, session: AgentSession[Any]) -> None:
        """Follow what is said in this session."""
        session.on("conversation_item_added", guarded(self._on_item))
        session.on("user_state_changed", guarded(self._on_user_state))
        session.on("user_input_transcribed", guarded(self._on_transcript))

    def rebound(self, before: Scope | None, scope: Scope | None, same: SamePerson) -> None:
        """Another caller is bound; None for nobody known."""
        if before is not None and before != scope and self._agent_answers():
            self._finishing = before
        if scope is None:
            # Whoever is bound later is not known to have said it.
            self._stats.turns_withheld += self.intake.discard()
            self._capture.discard_unbound()
            self._consent.unbound()
        else:
            self._consent.bound(scope.container_tag)
            self.intake.bound(scope)
            self._capture.bound(scope)

    # -- what a reply asks ---------------------------------------------------------------------------------------

    def answers(self, message_id: str) -> None:
        """A reply to this message, committed or not, is being made at this moment."""
        if not self._binding.bound_caller_speaks():
            self._consent.keep_private(message_id)
            return
        self._consent.answered(message_id)
        committed, spoken_by = self._committed_last
        if message_id == committed:
            if self._line.linked not in (None, spoken_by):
                # The reply goes on, after a tool perhaps, with somebody else on the line.
                self._consent.keep_private(message_id)
            return
        if (scope := self._spoken_under(message_id)) is not None:
            self._begun_under[message_id] = scope

    def tool_answered(self) -> None:
        """The reply goes on with what a tool has found, or done: whom it has bound is known to it."""
        self._finishing = None

    def may_search_for(self, message_id: str) -> bool:
        """Whether the words of this message may be looked up in the bound caller's memory."""
        scope = self._binding.scope
        return self._begun_under.get(message_id, scope) == scope and self._consent.may_search_for(message_id)

    # -- what is taken back --------------------------------------------------------------------------------------

    def discard(self) -> int:
        """Throw away what is buffered. Returns how many turns that were."""
        return self.intake.discard() + self._capture.discard()

    def caller_goes(self, off: bool) -> None:
        """The caller went off the record, or on it again."""
        self._consent.caller_goes(off=off)
        if off:
            self._withdraw(self._memory_talk.taken_back())

    def forgetting(self) -> None:
        """Something is about to be forgotten."""
        self._memory_talk.tries()

    def forgot(self) -> bool:
        """Something was forgotten: what the caller said to have it forgotten must not bring it back.

        Whether anything said was kept out for that.
        """
        agent, session = self._line.agent()
        reports_late = agent is not None and realtime.is_realtime(agent, session)
        return self._withdraw(self._memory_talk.succeeds(words_may_come=reports_late)) > 0

    def _withdraw(self, turns: Sequence[Said]) -> int:
        """Take these back from wherever they are, as far as they are not sent. Returns how many that were."""
        withdrawn = self.intake.withdraw(turns)
        withdrawn += self._capture.withdraw({said.order for said in turns if said.order is not None})
        self._recall.unheard({said.at for said in turns})
        return withdrawn

    # -- what LiveKit reports ------------------------------------------------------------------------------------

    def _on_item(self, event: Any) -> None:
        item = event.item
        if item.type == "agent_handoff":
            self._agent_changed()
        if item.type != "message" or item.role not in ("user", "assistant"):
            return
        role: Role = "caller" if item.role == "user" else "agent"
        if role == "caller":
            self._recall.committed(item.id)
            self._wiring.caller_spoke(item.id)
        bound_caller = self._binding.bound_caller_speaks()
        scope = self._scope_of(role, item.id)
        may_keep = self._consent.keeps(role, item.id, tag=scope.container_tag if scope else None)
        if role == "caller" and scope != self._binding.scope:
            # Kept for who said it; not looked up for who is bound by now.
            self._consent.keep_private(item.id)
        if not bound_caller:
            self._stats.turns_dropped += 1
            self._say_another()
            return
        self._goes_on()
        self._memory_talk.begins(role)
        said = Said(
            role,
            strip_fenced(item.text_content or ""),
            datetime.fromtimestamp(item.created_at, timezone.utc),
            scope,
            interrupted=bool(item.interrupted),
        )
        is_somebody = scope is not None or not self._binding.nobody
        if may_keep and is_somebody and not self._memory_talk.keeps_out():
            self._memory_talk.add(said)
            self.intake.take(said)
        else:
            self._stats.turns_withheld += not is_blank(said.text)
            self._passed(said)
        if role == "agent":
            self._wiring.agent_replied()
        else:
            self._committed(item)

    def _on_transcript(self, event: Any) -> None:
        # Half of a number is none that a redactor knows: with one, only finished words are looked up.
        if self._hears() and self._consent.may_search_ahead and not self._redaction.wanted:
            self._recall.caller_says(event.transcript, final=event.is_final)

    def _on_user_state(self, event: Any) -> None:
        if event.new_state == "speaking" and self._hears() and not self._consent.off:
            self._recall.caller_speaks()

    def _hears(self) -> bool:
        """Some of a turn is heard at this moment. Whether it is the bound caller who speaks."""
        self._line.hears()
        bound_caller = self._binding.bound_caller_speaks()
        if bound_caller:
            self._consent.speaks()
        return bound_caller

    # -- whose words they are ------------------------------------------------------------------------------------

    def _scope_of(self, role: Role, message_id: str) -> Scope | None:
        """The scope under which a turn was spoken that is committed now: another caller may be bound by now."""
        if role == "agent":
            scope, self._finishing = self._finishing or self._binding.scope, None
            return scope
        scope = self._spoken_under(message_id)
        self._begun_under = {}
        self._committed_last = (message_id, self._line.linked)
        self._line.turn_over()
        # The answer to words of somebody else is of no use to the bound caller. An answer to the caller before that was
        # cut off before its first sound is never committed.
        self._finishing = scope if scope != self._binding.scope else None
        return scope

    def _spoken_under(self, message_id: str) -> Scope | None:
        """Whose words those of the turn under way are, as far as they are known now."""
        heard = self._line.heard
        if len(heard) > 1:
            self._leave_out(message_id)
        if message_id in self._begun_under:
            return self._begun_under[message_id]
        if others := heard - {self._line.speaker}:
            if (scope := self._binding.scope_of(next(iter(others)))) is not None:
                return scope
            if self._line.speaker is not None:
                self._leave_out(message_id)
        return self._binding.scope

    def _leave_out(self, message_id: str) -> None:
        """It is not known whose words these are, or not whose memory."""
        self._consent.keep_private(message_id)
        self._say_another()

    def _say_another(self) -> None:
        self._notices.say_once(
            "speaker",
            "Another participant than the bound caller is on the line: what is said is not stored and nothing is "
            "recalled until bind names the caller",
        )

    def _agent_answers(self) -> bool:
        _, session = self._line.agent()
        return session is not None and session.current_speech is not None

    # -- into the buffer -----------------------------------------------------------------------------------------

    def _deliver(self, said: Said) -> None:
        said.order = self._capture.record(
            said.role, said.text, at=said.at, scope=said.scope, interrupted=said.interrupted
        )
        if said.scope == self._binding.scope:
            self._recall.heard(said.role, said.text, said.at)

    def _passed(self, said: Said) -> None:
        """A turn is in the buffer, or is not to be. The exchange is over when the agent has answered."""
        if said.role == "agent" and not self._memory_talk.undecided:
            self._write_soon()

    def _write_soon(self) -> None:
        """Store the turns so far. A realtime model may report the caller's words after its own reply to them, so they
        get a moment to arrive and be written in order."""
        agent, session = self._line.agent()
        if agent is not None and realtime.is_realtime(agent, session):
            self._background.start(self._write_later(), "Storing the last turns")
        else:
            self._capture.wake()

    async def _write_later(self) -> None:
        await asyncio.sleep(TRANSCRIPT_WAIT)
        if not self._memory_talk.undecided:
            self._capture.wake()


def guarded(handler: Callable[..., None]) -> Callable[..., None]:
    """An event handler that cannot hurt the call: LiveKit's emitter re-raises a TypeError into the reply."""

    def call(*args: Any) -> None:
        try:
            handler(*args)
        except Exception as error:  # noqa: BLE001
            logger.error("A memory event handler failed with %s", type(error).__name__)

    return call
