"""Turns in which the caller manages the memory: "forget my old address, 5 Elm Street" must not store that address.

The turns of an exchange, what the caller said and what the agent answered, are known here while they may still be
kept out. An exchange in which a fact was forgotten is withdrawn as a whole, and the agent's confirmation is not taken.
One in which forgetting was tried in vain is kept from being written for a few exchanges more: usually the agent has
asked which fact is meant, and the fact is forgotten when that is clear. docs/decisions/0019-consent.md
"""

from __future__ import annotations

from supermemory_livekit.transcript import Role

from .intake import Said

__all__ = ["FOLLOW_UPS", "MemoryTalk"]

FOLLOW_UPS = 3
"""Exchanges after a vain try in which the fact may still be forgotten."""


class MemoryTalk:
    """The exchange under way, and those before it that belong to it."""

    def __init__(self) -> None:
        self._turns: list[Said] = []
        self._held = 0
        """Exchanges, this one included, in which what was tried may still succeed."""
        self._forgotten = False
        self._words_to_come = False
        """The caller's words of this exchange, in which something was forgotten, have not arrived yet."""

    @property
    def undecided(self) -> bool:
        """Whether what was said last may still turn out to be kept out, and is not to be written yet."""
        return self._held > 0

    def begins(self, role: Role) -> None:
        """A turn was committed. A caller's turn begins an exchange."""
        if role != "caller":
            return
        if self._words_to_come:
            self._words_to_come = False
            return
        self._held = max(0, self._held - 1)
        if not self._held:
            self._turns = []
        self._forgotten = False

    def keeps_out(self) -> bool:
        """Whether turns of this exchange are not to be taken."""
        return self._forgotten

    def add(self, said: Said) -> None:
        """This turn of the exchange was taken."""
        self._turns.append(said)

    def taken_back(self) -> list[Said]:
        """The turns so far are to be withdrawn."""
        turns, self._turns = self._turns, []
        return turns

    def tries(self) -> None:
        """Something is about to be forgotten."""
        self._held = 1 + FOLLOW_UPS

    def succeeds(self, *, words_may_come: bool) -> list[Said]:
        """Something was forgotten: these turns are to be withdrawn.

        `words_may_come`: whether the model may act on words of the caller before they are reported.
        """
        turns = self.taken_back()
        self._words_to_come = words_may_come and all(said.role != "caller" for said in turns)
        self._forgotten = True
        self._held = 0
        return turns
