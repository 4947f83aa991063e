"""What the caller is saying, before they have said it: the words so far, and how much of the finished words they are.

LiveKit reports each segment of speech by interim transcripts and one final one; a turn may have several segments, and
the words that the reply answers are the final ones joined by spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from supermemory_livekit.retrieval import Index, Passage
from supermemory_livekit.retrieval.words import terms
from supermemory_livekit.store import Hit

__all__ = ["Chosen", "SpokenWords", "choose", "content", "is_trivial"]

ENOUGH_WORDS = 2
"""Content words from which on unfinished words are searched. Measured: decision 9."""

EARLY_LIMIT = 50
"""Hits asked for by unfinished words: many, since the finished words choose among them."""

_NOISE = frozenset(
    [
        "ah",
        "aha",
        "alright",
        "bye",
        "danke",
        "eh",
        "ehm",
        "er",
        "erm",
        "goodbye",
        "gracias",
        "great",
        "hello",
        "hey",
        "hi",
        "hm",
        "hmm",
        "huh",
        "merci",
        "mhm",
        "mm",
        "mmhm",
        "no",
        "nope",
        "ok",
        "okay",
        "right",
        "si",
        "sim",
        "sure",
        "thanks",
        "thank",
        "uh",
        "um",
        "well",
        "wow",
        "yea",
        "yeah",
        "yep",
        "yes",
    ]
)


class SpokenWords:
    """The words of the turn that is being spoken."""

    def __init__(self) -> None:
        self._final: list[str] = []
        self._interim = ""

    def hears(self, transcript: str, *, final: bool) -> str:
        """Take one transcript event. Returns all words of the turn so far."""
        if final:
            self._final.append(transcript.strip())
            self._interim = ""
        else:
            self._interim = transcript.strip()
        return " ".join(part for part in [*self._final, self._interim] if part)

    def committed(self) -> None:
        """The turn is over: what comes next belongs to another one."""
        self._final.clear()
        self._interim = ""


def content(text: str) -> frozenset[str]:
    """The words of `text` that a search goes by, stemmed, without stop words."""
    return frozenset(terms(text, asked=True))


@dataclass(frozen=True)
class Chosen:
    """What the finished words choose among the hits of unfinished ones."""

    hits: tuple[Hit, ...]
    telling: bool
    """Whether they can stand for a search of the finished words: nothing was missing from the words that were
    searched, or a word that was missing occurs in what they found."""


def choose(hits: Sequence[Hit], early: str, finished: str, *, limit: int, threshold: float) -> Chosen:
    """Rank the hits of unfinished words by the finished ones, by full text. Blocks for milliseconds."""
    index = Index()
    index.add([Passage(str(n), hit.text, "memory", hit.updated_at, None) for n, hit in enumerate(hits)])
    ranked = [
        replace(hit, similarity=max(hit.similarity, found.similarity))
        for found in index.search(finished, limit=limit, threshold=0.0)
        for hit in [hits[int(found.key)]]
    ]
    texts = {hit.text for hit in ranked}
    # What shares no word with the finished ones may still be meant by them.
    others = [hit for hit in hits if hit.text not in texts]
    best = [hit for hit in [*ranked, *others] if hit.similarity >= threshold][:limit]
    missing = content(finished) - content(early)
    telling = not missing or any(missing & content(hit.text) for hit in hits)
    return Chosen(tuple(best), telling)


def is_trivial(text: str) -> bool:
    """Whether nothing can be looked up by this: blanks, noise marks such as "[laughter]", "ok", "uh-huh"."""
    words = [word.strip(".,!?…-\"'").casefold() for word in text.replace("-", " ").split()]
    spoken = [word for word in words if word and not word.startswith(("[", "(", "<", "*")) and word.isalnum()]
    return all(word in _NOISE for word in spoken)
