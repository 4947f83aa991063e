"""Full text: how much of what a query asks for is said in a passage.

BM25, divided by what a passage of average length with every term of the query would score. So a score
says how much of the query is covered, whatever the query's length, and can be read without the other
scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .words import is_identifier, terms

__all__ = ["FullText"]

_SATURATION = 1.2  # BM25 k1
_LENGTH = 0.4  # BM25 b; facts are short, and a long one is no less about its topic
_BACKGROUND = (
    20  # passages that are supposed to exist besides, so that rarity means something among three facts
)
_IDENTIFIER = 4.0  # weight of a term with digits that some passage has
_STEEPNESS = 1.6  # 1 - exp(-s x): half of the query covered gives 0.55, all of it 0.8


class FullText:
    """Terms of passages in numbered slots. Not thread-safe by itself; `Index` holds the lock."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[int, int]] = {}
        self._arrays: dict[str, tuple[NDArray[np.intp], NDArray[np.float32]]] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = np.zeros(0, dtype=np.float32)
        self._total = 0

    def grow(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        self._lengths = np.concatenate(
            [self._lengths, np.zeros(capacity - len(self._lengths), dtype=np.float32)]
        )

    def put(self, slot: int, text: str) -> None:
        """Keep the terms of `text` in an empty slot."""
        counts = Counter(terms(text))
        for term, count in counts.items():
            self._postings.setdefault(term, {})[slot] = count
            self._arrays.pop(term, None)
        self._terms[slot] = tuple(counts)
        self._lengths[slot] = counts.total()
        self._total += counts.total()

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        for term in self._terms.pop(slot):
            self._arrays.pop(term, None)
            holders = self._postings[term]
            del holders[slot]
            if not holders:
                del self._postings[term]
        self._total -= int(self._lengths[slot])
        self._lengths[slot] = 0

    def coverage(self, query: str) -> NDArray[np.float32]:
        """For each slot from 0 to 1: how much of `query` it says. 0 where no term is shared."""
        scores = np.zeros(len(self._lengths), dtype=np.float32)
        whole = 0.0
        average = self._average()
        for _, weight, found in self._asked(query):
            whole += weight
            if found is None:
                continue
            slots, counts = found
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * self._lengths[slots] / average)
            scores[slots] += weight * counts * (_SATURATION + 1) / (counts + damping)
        if not whole:
            return scores
        coverage: NDArray[np.float32] = 1 - np.exp(scores * np.float32(-_STEEPNESS / whole))
        return coverage

    def shares(
        self, query: str, rings: Sequence[Sequence[NDArray[np.intp]]], ignored: Collection[str] = ()
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """BM25 of `query` as a share of what it could score: of each passage alone, then with each ring of others;
        and the share of the query, its terms by their weights but for `ignored` ones, that is said within all rings.

        A ring holds, for each slot, slots of passages that stand around it, -1 for none; each is taken together
        with the rings before it. Arrays of the same length as a ring, whose last element is for no slot.
        """
        lengths = [np.append(self._lengths, np.float32(0))]
        for ring in rings:
            lengths.append(lengths[-1] + sum(lengths[0][others] for others in ring))
        scores = [np.zeros_like(lengths[0]) for _ in lengths]
        said = np.zeros_like(lengths[0])
        whole = meant = 0.0
        average = self._average()
        # Surroundings are longer; by their own average a long one is no less about its topic.
        averages = [average * (1 + sum(len(ring) for ring in rings[:n])) for n in range(len(lengths))]
        damping = [
            _SATURATION * (1 - _LENGTH + _LENGTH * length / mean)
            for length, mean in zip(lengths, averages, strict=True)
        ]
        for term, weight, found in self._asked(query):
            counted = 0.0 if term in ignored else weight
            whole += weight
            meant += counted
            if found is None:
                continue
            own = np.zeros_like(lengths[0])
            own[found[0]] = found[1]
            counts = own
            for n, score in enumerate(scores):
                if n:
                    counts = counts + sum(own[others] for others in rings[n - 1])
                score += weight * counts / (counts + damping[n])
            said += counted * (counts > 0)
        scale = np.float32((_SATURATION + 1) / (whole or 1.0))
        covered: NDArray[np.float32] = said * np.float32(1 / (meant or 1.0))
        return [score * scale for score in scores], covered

    def _average(self) -> float:
        return max(self._total / max(len(self._terms), 1), 1.0)

    def _asked(
        self, query: str
    ) -> Iterator[tuple[str, float, tuple[NDArray[np.intp], NDArray[np.float32]] | None]]:
        """Each term of the query, its weight, and the slots that have it with how often."""
        if not self._terms:
            return
        for term in dict.fromkeys(terms(query, asked=True)):
            found = self._lookup(term)
            yield term, self._weight(term, 0 if found is None else len(found[0])), found

    def _lookup(self, term: str) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        arrays = self._arrays.get(term)
        if arrays is None:
            holders = self._postings.get(term)
            if holders is None:
                return None
            arrays = (
                np.fromiter(holders.keys(), dtype=np.intp, count=len(holders)),
                np.fromiter(holders.values(), dtype=np.float32, count=len(holders)),
            )
            self._arrays[term] = arrays
        return arrays

    def _weight(self, term: str, holders: int) -> float:
        passages = len(self._terms) + _BACKGROUND
        rarity = math.log(1 + (passages - holders + 0.5) / (holders + 0.5))
        return rarity * _IDENTIFIER if holders and is_identifier(term) else rarity
