"""Whether what is said now may be kept, and looked for: the caller's consent, and what is off the record. Pure.

Consent belongs to a caller, not to a call: whoever is bound next is asked anew. What it allows, and what is off the
record, belongs to the words: a turn is private when any of it was spoken while it was not allowed to keep it.
docs/decisions/0019-consent.md has the rules; `session/conversation.py` applies them to turns and to their answers.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

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
        self._first_answer_by: str | None = None
        """Identity of the participant who was on the line then."""
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

    # -- consent -------------------------------------------------------------------------------------------------

    @property
    def given(self) -> bool:
        """Whether anything of the bound caller may be kept or recalled."""
        return self.given_by(self._tag)

    def given_by(self, tag: str | None) -> bool:
        """The same of the caller with this tag; None for a caller who is not bound yet."""
        answer = self._first_answer if tag is None else self._answers.get(tag)
        return not self._asked if answer is None else answer

    def answer(self, agreed: bool, *, by: str | None = None) -> None:
        """The caller agreed, or did not, or no longer does. `by`: identity of the participant on the line."""
        if self._tag is not None:
            self._answers[self._tag] = agreed
        elif not self._is_nobody:
            # Of a caller who is nobody nothing is kept anyway, and the next one is asked anew.
            self._first_answer, self._first_answer_by = agreed, by
        if not agreed:
            # They may agree again before the turn is over.
            self._spoken_private = self._spoken_private or self._speaking

    def bound(self, tag: str, *, by: str | None = None) -> None:
        """The caller with this tag is on the line. `by`: identity of the participant there."""
        if self._first_answer is not None:
            same = None in (by, self._first_answer_by) or by == self._first_answer_by
            if same or not self._first_answer:
                self._answers.setdefault(tag, self._first_answer)
            self._first_answer = None
        if tag != self._tag:
            first = self._tag is None and not self._is_nobody
            self._caller_is_off = tag in self._went_off or (first and self._caller_is_off)
            if self._caller_is_off:
                self._went_off.add(tag)
        self._tag = tag
        self._is_nobody = False

    def renamed(self, before: str | None, tag: str, *, refusals_only: bool) -> None:
        """The same person has another tag from now on, or perhaps the same person: then what they refused holds."""
        answer = self._answers.get(before) if before is not None else None
        if answer is not None and not (refusals_only and answer):
            self._answers.setdefault(tag, answer)
        if self._caller_is_off:
            self._went_off.add(tag)

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
        self._spoken_private = self._spoken_private or self._speaking
        try:
            yield
        finally:
            self._blocks -= 1

    def caller_goes(self, *, off: bool) -> None:
        """The caller asked for it, or took it back."""
        self._caller_is_off = off
        self._spoken_private = self._spoken_private or (off and self._speaking)
        if self._tag is not None:
            (self._went_off.add if off else self._went_off.discard)(self._tag)

    # -- the turn under way --------------------------------------------------------------------------------------

    @property
    def allows(self) -> bool:
        """Whether what the bound caller says at this moment may be kept."""
        return self.given and not self.off

    @property
    def allows_search_ahead(self) -> bool:
        """Whether the words of the turn under way, as far as they are known, may be looked up."""
        return not (self.off or self._spoken_private)

    def speaks(self) -> None:
        """Somebody is heard speaking at this moment."""
        self._speaking = True
        self._spoken_private = self._spoken_private or not self.allows

    @property
    def spoken_private(self) -> bool:
        """Whether some of the turn under way was said when it was not allowed to keep it."""
        return self._spoken_private

    def turn_over(self) -> bool:
        """The turn under way was committed. Whether it is private."""
        private, self._spoken_private = self._spoken_private, False
        self._speaking = False
        return private or self.off
