"""Whether what is said now may be kept, and looked for: the caller's consent, and what is off the record. Pure.

Consent belongs to a caller, not to a call: whoever is bound next is asked anew. What it allows, and what is off the
record, belongs to the words: a turn is private when any of it was spoken while it was not allowed to keep it, and so is
the agent's answer to it, whenever the two are committed. docs/decisions/0019-consent.md has the rules.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from supermemory_livekit.transcript import Role

__all__ = ["Consent"]


class Consent:
    """What the caller of this moment allows.

    Args:
        asked: Whether a caller has to agree first (`capture="consent"`).
    """

    def __init__(self, *, asked: bool) -> None:
        self._asked = asked
        self._answers: dict[str, bool] = {}
        """By container tag."""
        self._first_answer: bool | None = None
        """Given before anybody was bound: the first caller's."""
        self._tag: str | None = None
        self._blocks = 0
        """`off_the_record` blocks that are entered."""
        self._caller_is_off = False
        self._went_off: set[str] = set()
        """Container tags of callers who are off the record, also while somebody else is on the line."""
        self._is_nobody = False
        self._speaking = False
        """Whether some of a turn was heard that is not committed yet."""
        self._spoken_private = False
        """Whether some of that turn was said when it was not allowed to keep it."""
        self._private_messages: set[str] = set()
        self._answering_private = False

    # -- consent -------------------------------------------------------------------------------------------------

    @property
    def given(self) -> bool:
        """Whether anything of the bound caller may be kept or recalled."""
        return self._given_by(self._tag)

    def answer(self, agreed: bool) -> None:
        """The caller agreed, or did not, or no longer does."""
        if self._tag is not None:
            self._answers[self._tag] = agreed
        elif not self._is_nobody:
            # Of a caller who is nobody nothing is kept anyway, and the next one is asked anew.
            self._first_answer = agreed
        if not agreed and self._speaking:
            # They may agree again before the turn is over.
            self._spoken_private = True

    def bound(self, tag: str) -> None:
        """The caller with this tag is on the line."""
        if self._first_answer is not None:
            self._answers.setdefault(tag, self._first_answer)
            self._first_answer = None
        if tag != self._tag and (self._tag is not None or self._is_nobody):
            self._caller_is_off = tag in self._went_off
        self._tag = tag
        self._is_nobody = False

    def unbound(self) -> None:
        """Somebody is on the line who is nobody known."""
        self._tag = None
        self._is_nobody = True
        self._first_answer = None
        self._caller_is_off = False

    def _given_by(self, tag: str | None) -> bool:
        answer = self._first_answer if tag is None else self._answers.get(tag)
        return not self._asked if answer is None else answer

    # -- off the record ------------------------------------------------------------------------------------------

    @property
    def off(self) -> bool:
        """Whether what is said at this moment is off the record."""
        return self._blocks > 0 or self._caller_is_off

    @contextmanager
    def off_the_record(self) -> Generator[None, None, None]:
        """What is said within is off the record. Blocks may overlap."""
        self._blocks += 1
        try:
            yield
        finally:
            self._blocks -= 1

    def caller_goes(self, *, off: bool) -> None:
        """The caller asked for it, or took it back."""
        self._caller_is_off = off
        if self._tag is not None:
            (self._went_off.add if off else self._went_off.discard)(self._tag)

    # -- turns ---------------------------------------------------------------------------------------------------

    def speaks(self) -> None:
        """The caller is heard speaking at this moment."""
        self._speaking = True
        self._spoken_private = self._spoken_private or self.off or not self.given

    def answered(self, message_id: str) -> None:
        """A reply to this message, committed or not, is being made at this moment."""
        if self.off or not self.given:
            self._answering_private = True
            self.keep_private(message_id)

    def keep_private(self, message_id: str) -> None:
        """The words of this message are neither kept nor looked up."""
        self._private_messages.add(message_id)

    def keeps(self, role: Role, message_id: str, *, tag: str | None) -> bool:
        """Whether this turn, committed just now, may be kept under `tag`. To be asked once for each turn, in order."""
        private = self.off or not self._given_by(tag)
        if role == "caller":
            private = private or self._spoken_private or message_id in self._private_messages
            self._speaking = self._spoken_private = False
            self._answering_private = private
            if private:
                self.keep_private(message_id)
            return not private
        return not (private or self._answering_private)

    @property
    def may_search_ahead(self) -> bool:
        """Whether the words of the turn under way, as far as they are known, may be looked up."""
        return not (self.off or self._spoken_private)

    def may_search_for(self, message_id: str) -> bool:
        """Whether the words of this message, committed or not, may be looked up."""
        return self.may_search_ahead and message_id not in self._private_messages
