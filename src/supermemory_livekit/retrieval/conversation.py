"""Turns of conversations: where each stands, and how much speaks for it when something is asked.

A turn alone often says too little: "Yes, in May." answers what was asked before, and what it is about is said
around it. So a turn is judged together with its neighbours: by the words of the turns up to one and two steps
around, less those that only a neighbour says, and by how much of the question is said there at all; by its meaning,
read after the turn before it, and that of the turn after it; by who speaks, whether it says when something was, on
which day it was said, and whether it asks or answers. The weights were fitted on conversations
(`bench/train_retrieval.py`; docs/decisions/0013-retrieval.md says what they are worth on others).
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from .dates import Period, periods
from .fulltext import FullText
from .windows import speaker
from .wording import split_stamp
from .words import terms

__all__ = ["FEATURES", "Conversations", "Place"]

FEATURES = (
    "words_within_1",
    "words_within_2",
    "words_before",
    "words_after",
    "covered",
    "meaning",
    "meaning_after",
    "speaker",
    "time",
    "date",
    "question",
    "after_question",
)
"""What speaks for a turn, in the order of `Conversations.features`."""
_WITHIN_2, _MEANING = FEATURES.index("words_within_2"), FEATURES.index("meaning")

_WEIGHTS = (2.26, 1.27, -0.95, -1.98, 3.98, 4.00, 1.88, 2.54, 2.23, 3.71, -0.78, 0.41)
# Half of all turns score nothing; half of the evidence 7.4 or more, which gives 0.56.
_STEEPNESS = 0.11

# A turn that was said so many days after or before a date that is asked for has nothing to do with it: what happens is
# told afterwards, rather than before.
_DAYS_AFTER, _DAYS_BEFORE = 14, 7

_NONE = -1
_QUESTION = re.compile(r"[?？؟]\W*$")
_ASKS_WHEN = re.compile(
    r"\b(?:when|how (?:long|old|often|recently)|(?:what|which) (?:date|day|month|year|time)|since|ago"
    r"|wann|wie lange|seit|cu[aá]ndo|quand|depuis|quando|desde)\b|何时|什么时候|いつ|언제",
    re.IGNORECASE,
)
_SAYS_WHEN = re.compile(
    r"\d|\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|since"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|gestern|heute|morgen|letzte\w*|n[aä]chste\w*|woche|monat|jahr"
    r"|ayer|hoy|ma[nñ]ana|semana|mes|a[nñ]o|hier|demain|semaine|mois|ann[eé]e|ontem|hoje|amanh[aã]|ano)\b"
    r"|昨天|今天|明天|去年|上周|昨日|今日|明日|先週|어제|오늘|내일",
    re.IGNORECASE,
)
_CALLER = frozenset({"caller", "user", "customer"})
_AGENT = frozenset({"agent", "assistant"})
_MYSELF = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|ich|mein\w*|mir|mich|yo|mi|me|je|mon|ma|eu|meu|minha)\b|我|私|나",
    re.IGNORECASE,
)
_YOURSELF = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Where a passage stands in a stored text."""

    document: str
    start: int
    """Its first character there."""
    stop: int
    """The character after its last."""


class Conversations:
    """Turns in numbered slots. Not thread-safe by itself; `Index` holds the lock."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        self._orders: dict[str, list[tuple[int, int]]] = {}
        # One element more than there are slots: -1, which stands for no neighbour, is its own neighbour.
        self.is_turn = np.zeros(1, dtype=np.bool_)
        self.previous = np.full(1, _NONE, dtype=np.intp)
        self.following = np.full(1, _NONE, dtype=np.intp)
        self._questions = np.zeros(1, dtype=np.float32)
        self._says_when = np.zeros(1, dtype=np.float32)
        self._days = np.zeros(1, dtype=np.float32)
        self._dates_said: dict[int, list[Period]] = {}
        self._speaker_of = np.zeros(1, dtype=np.intp)
        self._speakers: list[str] = [""]
        self._turns_of: Counter[str] = Counter()
        self._speaker_numbers: dict[str, int] = {"": 0}

    def __bool__(self) -> bool:
        return bool(self._places)

    def grow(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        for name, empty in (
            ("is_turn", False),
            ("previous", _NONE),
            ("following", _NONE),
            ("_questions", 0),
            ("_says_when", 0),
            ("_days", 0),
            ("_speaker_of", 0),
        ):
            before = getattr(self, name)
            grown = np.full(capacity + 1, empty, dtype=before.dtype)
            grown[: len(before) - 1] = before[:-1]
            setattr(self, name, grown)

    def put(self, slot: int, text: str, place: Place) -> None:
        """Keep what is needed of the turn `text` in an empty slot. Text that is no turn is left out."""
        label = speaker(text)
        if not label:
            return
        self._places[slot] = place
        self.is_turn[slot] = True
        said = text.partition(": ")[2] or text
        self._questions[slot] = _QUESTION.search(said) is not None
        self._says_when[slot] = _SAYS_WHEN.search(said) is not None
        self._days[slot] = _day(text)
        if any(map(str.isdigit, said)) and (dates := periods(said)):
            self._dates_said[slot] = dates
        name = label.casefold()
        if name not in self._speaker_numbers:
            self._speaker_numbers[name] = len(self._speakers)
            self._speakers.append(name)
        self._turns_of[name] += 1
        self._speaker_of[slot] = self._speaker_numbers[name]
        order = self._orders.setdefault(place.document, [])
        entry = (place.start, slot)
        at = bisect_left(order, entry)
        before = order[at - 1][1] if at else _NONE
        after = order[at][1] if at < len(order) else _NONE
        insort(order, entry)
        self._join(before, slot)
        self._join(slot, after)

    def clear(self, slot: int) -> None:
        """Empty a slot; its neighbours become neighbours of each other."""
        place = self._places.pop(slot, None)
        if place is None:
            return
        order = self._orders[place.document]
        order.pop(bisect_left(order, (place.start, slot)))
        if not order:
            del self._orders[place.document]
        self._join(int(self.previous[slot]), int(self.following[slot]))
        self.previous[slot] = self.following[slot] = _NONE
        self.is_turn[slot] = False
        name = self._speakers[int(self._speaker_of[slot])]
        self._turns_of[name] -= 1
        if not self._turns_of[name]:
            del self._turns_of[name]
        self._days[slot] = 0
        self._dates_said.pop(slot, None)

    def place(self, slot: int) -> Place:
        return self._places[slot]

    def features(
        self, query: str, fulltext: FullText, meaning: NDArray[np.float32] | None
    ) -> tuple[NDArray[np.float32], ...]:
        """What speaks for each slot's turn: `FEATURES` of shape `(slots + 1,)`, the last for no slot.

        Words and meaning from 0 on. A turn of somebody who is not named where another is has speaker -1, one that
        does not say when where that is asked has time -1, one said long before or after a date that is named has date
        -1: so scores of different queries can be compared.
        `meaning`: how near query and turn are, from 0 to 1, NaN where it is not known.
        """
        before, after = self.previous, self.following
        names = {term for name in self._turns_of for term in terms(name)}
        (words, near, wide), covered = fulltext.shares(
            query, [(before, after), (before[before], after[after])], ignored=names
        )
        meant: NDArray[np.float32] = near
        if meaning is not None:
            # Without a vector a turn is taken to mean what is said around it.
            known = np.append(meaning, np.float32(np.nan))
            meant = np.where(np.isnan(known), near, known)
        named = self._spoken_by(query)
        asks_when = np.float32(_ASKS_WHEN.search(query) is not None)
        lacks_time: NDArray[np.float32] = (self._says_when - 1) * asks_when
        return (
            near,
            wide,
            words[before],
            words[after],
            covered,
            meant,
            meant[after],
            (named - named.max())[self._speaker_of],
            lacks_time,
            self._off_date(query),
            self._questions,
            self._questions[before],
        )

    def similarity(
        self, query: str, fulltext: FullText, meaning: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        """For each slot how much speaks for its turn, from 0 to 1; 0 where there is no turn."""
        features = self.features(query, fulltext, meaning)
        score: NDArray[np.float32] = np.zeros(len(self.is_turn), dtype=np.float32)
        for weight, feature in zip(_WEIGHTS, features, strict=True):
            score += feature * weight
        # Who speaks and when says nothing by itself.
        bearing = self.is_turn & ((features[_WITHIN_2] > 0) | (features[_MEANING] > 0))
        similarity = 1 - np.exp(np.maximum(score, 0) * -_STEEPNESS)
        return np.where(bearing, similarity, np.float32(0))[:-1]

    def _spoken_by(self, query: str) -> NDArray[np.float32]:
        """For each speaker 1 when the query names them, else 0; 0 for one who has no turn any more."""
        asked = set(terms(query, asked=True))
        named = [bool(name) and not asked.isdisjoint(terms(name)) for name in self._speakers]
        for number, name in enumerate(self._speakers):
            if name in _CALLER:
                named[number] = _MYSELF.search(query) is not None
            elif name in _AGENT:
                named[number] = _YOURSELF.search(query) is not None
            if name not in self._turns_of:
                named[number] = False
        return np.array(named, dtype=np.float32)

    def _off_date(self, query: str) -> NDArray[np.float32]:
        """From 0 to -1: how far from the dates that the query names a turn was said, beside the nearest turn.

        0 also for a turn that names the date itself, and where it is not known when it was said.
        """
        off = np.zeros(len(self._days), dtype=np.float32)
        dated = self._days > 0
        asked = periods(query)
        if not asked or not dated.any():
            return off
        days = self._days[dated]
        first, last = (date.fromordinal(int(day)).year for day in (days.min(), days.max()))
        distance = np.ones_like(days)
        for begin, end in (span for period in asked for span in period.spans(first - 1, last + 1)):
            away = np.maximum((days - end) / _DAYS_AFTER, (begin - days) / _DAYS_BEFORE)
            distance = np.minimum(distance, np.maximum(away, 0))
        off[dated] = distance.min() - distance
        for slot, said in self._dates_said.items():
            if any(one.agrees(other) for one in asked for other in said):
                off[slot] = 0
        return off

    def _join(self, before: int, after: int) -> None:
        if before != _NONE:
            self.following[before] = after
        if after != _NONE:
            self.previous[after] = before


def _day(text: str) -> int:
    """The day on which a turn was said, as an ordinal of `datetime.date`; 0 where its line does not say."""
    _, dates = split_stamp(text)
    try:
        return date.fromisoformat(dates[0]).toordinal() if dates else 0
    except ValueError:
        return 0
