"""What goes into an extractor and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

__all__ = ["Changes", "ExtractionFailed", "Extractor", "Fact", "Known", "Line"]


@dataclass(frozen=True)
class Line:
    """One turn of a call."""

    at: datetime | None
    """When it was said, in UTC; None when the transcript does not say."""
    role: Literal["caller", "agent"] | None
    """Who said it; None for anybody else (a system note, a third speaker)."""
    text: str


@dataclass(frozen=True)
class Known:
    """A memory that is already stored for this caller."""

    id: str
    text: str
    static: bool
    at: datetime | None
    """When it was said last."""


@dataclass(frozen=True)
class Fact:
    """A memory to store."""

    text: str
    static: bool
    """True for what stays true (a name, an allergy, a home), False for events, orders, plans and moods."""
    at: datetime
    """When the caller said it, in UTC."""
    expires: datetime | None = None
    """When it stops being worth knowing, in UTC; None when it does not."""
    replaces: tuple[str, ...] = ()
    """Ids of known memories that this one takes the place of."""


@dataclass(frozen=True)
class Changes:
    """What a piece of a call changes in the caller's memory."""

    add: tuple[Fact, ...] = ()
    forget: tuple[str, ...] = ()
    """Ids of known memories the caller asked to forget or took back."""


class ExtractionFailed(Exception):
    """An extractor could not do its work now: the model is unreachable, slow or answers nonsense.

    Trying again later may help. The message names the kind of failure and holds nothing of the call.
    """


class Extractor(Protocol):
    """Turns a piece of a call into changes of the caller's memory."""

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        """Changes that `lines` make to `known`.

        `at` dates lines that carry no time of their own. `before` holds the turns right before `lines`,
        worked on earlier: they make no facts, but an answer in the first line is understood by the question there.

        Raises `ExtractionFailed`.
        """
        ...
