"""Whether what is said now may be kept, and looked for: the caller's consent, and what is off the record. Pure.

Consent belongs to a caller, not to a call: whoever is bound next is asked anew. Off the record belongs to the words: a
turn is private when any of it was spoken off the record, and so is the agent's answer to it, whenever the two are
committed. docs/decisions/0019-consent.md has the rules.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from .transcript import Role

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
        self._spoken_off = False
        """Whether some of the turn that is being spoken was said off the record."""
        self._private_messages: set[str] = set()
        self._answering_private = False

    # -- consent -------------------------------------------------------------------------------------------------

    @property
    def given(self) -> bool:
        """Whether anything of the bound caller may be kept or recalled."""
        answer = self._first_answer if self._tag is None else self._answers.get(self._tag)
        return not self._asked if answer is None else answer

    def answer(self, agreed: bool) -> None:
        """The caller agreed, or did not, or no longer does."""
        if self._tag is not None:
            self._answers[self._tag] = agreed
        elif not self._is_nobody:
            # Of a caller who is nobody nothing is kept anyway, and the next one is asked anew.
            self._first_answer = agreed

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

    def speaks(self) -> None:
        """The caller is heard speaking at this moment."""
        self._spoken_off = self._spoken_off or self.off

    def keeps(self, role: Role, message_id: str) -> bool:
        """Whether this turn, committed just now, is on the record. To be asked once for each turn, in order."""
        if role == "caller":
            private = self.off or self._spoken_off
            self._spoken_off = False
            self._answering_private = private
            if private:
                self._private_messages.add(message_id)
            return not private
        return not (self.off or self._answering_private)

    def may_search_for(self, message_id: str) -> bool:
        """Whether the words of this message, committed or not, may be looked up."""
        return not (self.off or self._spoken_off or message_id in self._private_messages)
