"""What is said in the attached sessions: whose words they are, whether they may be kept, and where they go.

LiveKit commits a turn after it was spoken, and an answer at its end, which may be after the caller's next turn. Until
then another caller may be bound, another participant be on the line, and what the caller allows may have changed. So
what decides is noted while words are heard and when a reply is begun, and an answer shares the fate of the turn that
it answers. docs/decisions/0019-consent.md has the rules.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from livekit.agents import AgentSession, llm
from livekit.agents.voice import SpeechHandle

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
from supermemory_livekit.transcript import Role, fold, is_blank, to_stamp_time

from . import realtime
from .binding import Binding, SamePerson
from .line import Line
from .reply import reply_in_progress
from .wiring import Notices, Wiring

__all__ = ["TRANSCRIPT_WAIT", "Conversation", "guarded"]

TRANSCRIPT_WAIT = 1.0
"""Seconds a realtime model gets to report the words that its reply answers."""

_KEPT = 32
"""Turns of the caller, and replies, that are known: more than can be under way."""


@dataclass(eq=False)
class _Turn:
    """A turn of the caller, from when a reply to it is begun, or it is committed."""

    scope: Scope | None
    """Whose words they are; None before the first bind."""
    private: bool = False
    """Neither kept nor looked up, and neither are its answers."""
    searchable: bool = True
    """Whether the bound caller's memory may be searched for it."""
    listened_to: str | None = None
    """Who was on the line when it was committed."""
    committed_at: float | None = None
    said: Said | None = None


@dataclass(eq=False)
class _Reply:
    """What the agent says in one go, with what follows its tools."""

    scope: Scope | None
    """Who was bound when it was begun."""
    private: bool = False
    kept_out: bool = False
    """Something was forgotten in it."""
    turn: _Turn | None = None
    """Which it answers, once that is known."""
    rebound: Scope | None = None
    """Whom one of its tools has bound."""


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
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        """By message id, in the order in which they became known."""
        self._replies: OrderedDict[str, _Reply] = OrderedDict()
        """By id of the speech handle."""
        self._heard_under: Scope | None = None
        """Who was bound when the turn under way was begun."""
        self._unbound_speakers: set[str] = set()
        """Identities of who was on the line for turns before the first bind."""
        self._waits: set[str] = set()
        """Ids of speech handles at whose end the turns so far are to be stored."""
        self._forgetting_for: Scope | None = None

    def listen(self, session: AgentSession[Any]) -> None:
        """Follow what is said in this session."""
        session.on("conversation_item_added", guarded(self._on_item))
        session.on("user_state_changed", guarded(self._on_user_state))
        session.on("user_input_transcribed", guarded(self._on_transcript))
        session.on("speech_created", guarded(self._on_speech))

    def rebound(self, before: Scope | None, scope: Scope | None, same: SamePerson) -> None:
        """Another caller is bound, None for nobody known, or the same one under another tag or session id."""
        if same == "yes":
            # What they have begun to say, and what they are being told, is theirs under the new tag.
            self._heard_under = scope if self._heard_under == before else self._heard_under
            for turn in self._turns.values():
                turn.scope = scope if turn.scope == before else turn.scope
            for reply in self._replies.values():
                reply.scope = scope if reply.scope == before else reply.scope
        if scope is None:
            # Whoever is bound later is not known to have said it.
            self._discard_unbound()
            self._consent.unbound()
            return
        on_the_line = self._line.speaker or self._line.linked
        speakers = self._unbound_speakers | ({on_the_line} if on_the_line is not None else set[str]())
        if len(speakers) > 1:
            # Some of it was said by somebody else.
            self._discard_unbound()
        self._unbound_speakers.clear()
        if same != "no":
            tag = before.container_tag if before is not None else None
            self._consent.renamed(tag, scope.container_tag, refusals_only=same == "perhaps")
        self._consent.bound(scope.container_tag, by=on_the_line)
        self.intake.bound(scope)
        self._capture.bound(scope)

    def _discard_unbound(self) -> None:
        self._stats.turns_withheld += self.intake.discard()
        self._capture.discard_unbound()

    # -- what a reply asks ---------------------------------------------------------------------------------------

    def answers(self, message_id: str) -> None:
        """A reply to this message, committed or not, is being made at this moment."""
        bound_caller = self._binding.bound_caller_speaks()
        turn = self._turn(message_id)
        if (reply := self._reply_in_progress()) is not None:
            reply.turn = turn
            reply.private = reply.private or not self._consent.allows
        if turn.committed_at is not None:
            # The reply goes on, after a tool perhaps, and somebody else may be on the line.
            if not bound_caller or self._line.linked not in (None, turn.listened_to):
                turn.searchable = False
        elif not bound_caller or not self._consent.allows:
            turn.private = True
        else:
            self._note_owner(turn)

    def tool_answered(self) -> None:
        """The reply goes on with what a tool has found, or done: whom it has bound is known to it."""
        reply = self._reply_in_progress()
        if reply is None:
            return
        listened_to = reply.turn.listened_to if reply.turn is not None else None
        if None in (listened_to, self._line.linked) or listened_to == self._line.linked:
            reply.rebound = self._binding.scope

    def may_search_for(self, message_id: str) -> bool:
        """Whether the words of this message may be looked up in the bound caller's memory."""
        turn = self._turn(message_id)
        if turn.private or not turn.searchable or self._consent.off:
            return False
        if turn.committed_at is not None:
            return True
        return self._consent.allows_search_ahead and turn.scope == self._binding.scope

    # -- what is taken back --------------------------------------------------------------------------------------

    def discard(self) -> int:
        """Throw away what is buffered. Returns how many turns that were."""
        moments = self._capture.moments()
        discarded = self.intake.discard() + self._capture.discard()
        self._recall.unheard(moments)
        return discarded

    @contextmanager
    def off_the_record(self) -> Generator[None, None, None]:
        """See `SupermemoryLiveKit.off_the_record`."""
        with self._consent.off_the_record():
            self._keep_current_speech_private()
            try:
                yield
            finally:
                self._keep_current_speech_private()

    def caller_goes(self, off: bool) -> None:
        """The caller went off the record, or on it again. Nobody else can take them there, or back."""
        if not off and not self._binding.bound_caller_speaks():
            return
        self._consent.caller_goes(off=off)
        if off:
            self._keep_current_speech_private()
            self._withdraw(self._memory_talk.taken_back())

    def consent(self, agreed: bool) -> None:
        """The caller agreed, or did not. Nobody else can agree for them."""
        if agreed and not self._binding.bound_caller_speaks():
            self._say_another()
            return
        self._consent.answer(agreed, by=self._line.linked)
        if not agreed:
            self._keep_current_speech_private()
            self.discard()

    def _keep_current_speech_private(self) -> None:
        """What the agent is saying at this moment is committed at its end."""
        if (speech := self._current_speech()) is not None:
            self._reply(speech).private = True

    def forgetting(self) -> None:
        """Something is about to be forgotten."""
        self._forgetting_for = self._binding.scope
        self._memory_talk.tries()

    def forgot(self) -> bool:
        """Something was forgotten: what the caller said to have it forgotten must not bring it back.

        Whether anything said was kept out for that.
        """
        turns = self._memory_talk.succeeds(words_may_come=self._is_realtime())
        if (reply := self._reply_in_progress()) is not None:
            reply.kept_out = True
            if reply.turn is not None and reply.turn.said is not None and reply.turn.said not in turns:
                turns.append(reply.turn.said)
        # A tool takes its time: somebody else may have said something by now.
        return self._withdraw([said for said in turns if said.scope == self._forgetting_for]) > 0

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
        self._memory_talk.begins(role)
        if role == "caller":
            turn = self._committed_turn(item.id, bound_caller)
            scope, private, kept_out = turn.scope, turn.private, self._memory_talk.keeps_out()
        else:
            turn = None
            scope, private, kept_out = self._committed_answer(item.created_at)
        if not bound_caller:
            self._stats.turns_dropped += 1
            self._say_another()
            return
        self._goes_on()
        said = Said(
            role,
            # As it is stored in the end: a redactor must not miss what folding brings together.
            fold(strip_fenced(item.text_content or "")),
            to_stamp_time(datetime.fromtimestamp(item.created_at, timezone.utc), datetime.now(timezone.utc)),
            scope,
            interrupted=bool(item.interrupted),
        )
        is_somebody = scope is not None or not self._binding.nobody
        if is_somebody and not private and not kept_out:
            if turn is not None:
                turn.said = said
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
        self._line.words()
        bound_caller = self._hears() and self._line.heard <= {self._line.speaker}
        # Half of a number is none that a redactor knows: with one, only finished words are looked up.
        if bound_caller and self._consent.allows_search_ahead and not self._redaction.wanted:
            self._recall.caller_says(event.transcript, final=event.is_final)

    def _on_user_state(self, event: Any) -> None:
        if event.new_state != "speaking":
            return
        self._line.begins()
        if self._hears() and not self._consent.off:
            self._recall.caller_speaks()

    def _on_speech(self, event: Any) -> None:
        self._reply(event.speech_handle)

    def _hears(self) -> bool:
        """Some of a turn is heard at this moment. Whether it is the bound caller who speaks."""
        bound_caller = self._binding.bound_caller_speaks()
        self._consent.speaks()
        self._heard_under = self._heard_under or self._binding.scope
        return bound_caller

    # -- turns and their answers ---------------------------------------------------------------------------------

    def _turn(self, message_id: str) -> _Turn:
        if message_id not in self._turns:
            self._turns[message_id] = _Turn(None)
            while len(self._turns) > _KEPT:
                self._turns.popitem(last=False)
        return self._turns[message_id]

    def _reply(self, speech: SpeechHandle) -> _Reply:
        if speech.id not in self._replies:
            self._replies[speech.id] = _Reply(self._binding.scope, private=not self._consent.allows)
            while len(self._replies) > _KEPT:
                self._replies.popitem(last=False)
        return self._replies[speech.id]

    def _reply_in_progress(self) -> _Reply | None:
        speech = reply_in_progress()
        return self._reply(speech) if speech is not None else None

    def _committed_turn(self, message_id: str, bound_caller: bool) -> _Turn:
        """The turn that is committed at this moment, with whose it is and whether it may be kept."""
        turn = self._turn(message_id)
        self._note_owner(turn)
        tag = turn.scope.container_tag if turn.scope is not None else None
        allowed = bound_caller and self._consent.given_by(tag)
        turn.private = self._consent.turn_over() or turn.private or not allowed
        # Kept for who said it; not looked up for who is bound by now.
        turn.searchable = turn.searchable and turn.scope == self._binding.scope
        turn.listened_to = self._line.linked
        turn.committed_at = time.time()
        if turn.scope is None and not self._binding.nobody:
            self._unbound_speakers |= self._line.heard or ({turn.listened_to} if turn.listened_to else set())
        if (reply := self._reply_in_progress()) is not None:
            reply.turn = turn
        self._line.turn_over()
        self._heard_under = None
        return turn

    def _committed_answer(self, created_at: float) -> tuple[Scope | None, bool, bool]:
        """Whose the answer is that is committed at this moment, whether it is private, and whether it is kept out."""
        speech = self._current_speech()
        reply = self._reply_in_progress() or (self._reply(speech) if speech is not None else None)
        turn = reply.turn if reply is not None else None
        turn = turn or self._turn_before(created_at)
        scope = turn.scope if turn is not None else reply.scope if reply is not None else None
        private = turn is not None and turn.private
        if reply is not None:
            scope = reply.rebound or scope
            private = private or reply.private
        if self._is_realtime():
            # The words that it answers may not have been reported yet.
            owner, known = self._owner()
            private = private or self._consent.spoken_private or not known
            scope = owner if self._line.heard else scope
        scope = scope or self._binding.scope
        allowed = not self._consent.off and self._consent.given_by(scope.container_tag if scope else None)
        kept_out = reply.kept_out if reply is not None and reply.turn is not None else False
        return scope, private or not allowed, kept_out or self._memory_talk.keeps_out()

    def _turn_before(self, moment: float) -> _Turn | None:
        """The turn that an answer begun at this moment answers, so far as time tells."""
        for turn in reversed(self._turns.values()):
            if turn.committed_at is not None and turn.committed_at <= moment:
                return turn
        return None

    def _note_owner(self, turn: _Turn) -> None:
        """Whose words those of the turn under way are, as far as they are known now."""
        owner, known = self._owner()
        if turn.scope is None:
            turn.scope = owner
        if not known:
            turn.private = True
            self._say_another()

    def _owner(self) -> tuple[Scope | None, bool]:
        """The scope of who is heard in the turn under way, and whether that is known."""
        heard, bound = self._line.heard, self._line.speaker
        others = heard - {bound}
        if len(heard) > 1 or not others:
            return self._heard_under or self._binding.scope, len(heard) < 2
        scope = self._binding.scope_of(min(others))
        # Before anybody is known to be on the line, it is whoever is heard.
        return scope or self._heard_under or self._binding.scope, scope is not None or bound is None

    def _say_another(self) -> None:
        self._notices.say_once(
            "speaker",
            "Another participant than the bound caller is on the line: what is said is not stored and nothing is "
            "recalled until bind names the caller",
        )

    def _current_speech(self) -> SpeechHandle | None:
        _, session = self._line.agent()
        return session.current_speech if session is not None else None

    def _is_realtime(self) -> bool:
        agent, session = self._line.agent()
        return agent is not None and realtime.is_realtime(agent, session)

    # -- into the buffer -----------------------------------------------------------------------------------------

    def _deliver(self, said: Said) -> None:
        said.order = self._capture.record(
            said.role, said.text, at=said.at, scope=said.scope, interrupted=said.interrupted
        )
        if said.scope == self._binding.scope:
            self._recall.heard(said.role, said.text, said.at)

    def _passed(self, said: Said) -> None:
        """A turn is in the buffer, or is not to be. The exchange is over when the agent has answered."""
        if said.role != "agent":
            return
        speech = self._current_speech()
        if speech is None or speech.done():
            self._exchange_over()
        elif speech.id not in self._waits:
            # A tool of this reply may still forget something, and take the turn along.
            self._waits.add(speech.id)
            speech.add_done_callback(guarded(self._on_reply_done))

    def _on_reply_done(self, speech: SpeechHandle) -> None:
        self._waits.discard(speech.id)
        self._exchange_over()

    def _exchange_over(self) -> None:
        """Store the turns so far. A realtime model may report the caller's words after its own reply to them, so they
        get a moment to arrive and be written in order."""
        if self._memory_talk.undecided:
            return
        if self._is_realtime():
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
