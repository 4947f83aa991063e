"""What can be told of a sentence by its words, beside its vector: who speaks of whom, in which tense, at what length.

A sentence vector says what a sentence is about, and little of whether it tells a story or states what holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .language import languages

__all__ = ["COUNT", "PAST", "features_of"]

_SCALE = 0.25
"""Sentence vectors have length 1: a feature of this size weighs about as much as a few of their dimensions."""

_SAID_BY_SELF = re.compile(
    r"^(?:i|i'm|i've|we|my|our|ich|wir|mein|je|j'|mon|ma|yo|eu|ik|mijn)\b", re.IGNORECASE
)
_OWN = re.compile(
    r"\b(?:my|our|mein\w*|unser\w*|mis?|nuestr\w+|mon|ma|mes|notre|nos|meus?|minhas?|mi[oa]|miei|mie|mijn|m'n|"
    r"onze)\b",
    re.IGNORECASE,
)
PAST = re.compile(
    r"\b(?:was|were|had|did|went|came|got|saw|said|told|took|put|fell|laughed|stood|sat|\w+ed|war|waren|hatte|kam|"
    r"ging|habe?|fue|era|había|\w+ó|était|avait|\w+é|foi|estava|ho|\w+[au]to|heb|heeft|ge\w+)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|never|no|nicht|kein\w*|nie|nunca|ne|pas|plus|jamais|não|non|mai|più|niet|geen|nooit)\b|n't\b",
    re.IGNORECASE,
)
_HABIT = re.compile(
    r"\b(?:always|usually|never|every|only|prefer|since|any ?more|used to|immer|nie|seit|jeden|nur|siempre|desde|"
    r"cada|nunca|solo|toujours|depuis|chaque|sempre|tod[ao]s|dal?|ogni|altijd|sinds|elke|alleen)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:he|she|they|his|her|their|er|sie|él|ella|ellos|il|elle|ils|ele|ela|lui|lei|hij|zij|ze)\b",
    re.IGNORECASE,
)
_LIKENESS = re.compile(
    r"\b(?:like an?|as \w+ as|wie (?:eine?|der|die)|como un\w?|comme une?|que nem|come un\w?|als een|zo \w+ als|"
    r"m[áa][si] \w+ que|plus \w+ que|più \w+ (?:di|del))\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_PATTERNS = (_SAID_BY_SELF, _OWN, PAST, _DENIAL, _HABIT, _OTHERS, _LIKENESS, _DIGIT)

COUNT = len(_PATTERNS) + 9
"""Features of a sentence."""


def features_of(texts: Sequence[str]) -> NDArray[np.float32]:
    """One row of `COUNT` features per text, each 0 or the same small number."""
    rows = [_row(text) for text in texts]
    values: NDArray[np.float32] = np.array(rows, np.float32).reshape(len(texts), COUNT)
    values *= _SCALE
    return values


def _row(text: str) -> list[bool]:
    known = languages()
    words = len(text.split())
    seen = [topic.sure for it in known for topic in it.topics if topic.pattern.search(text)]
    return [
        *(pattern.search(text) is not None for pattern in _PATTERNS),
        any(it.first.search(text) for it in known),
        True in seen,
        False in seen,
        any(it.talk.search(text) or it.hearsay.search(text) or it.unreal.search(text) for it in known),
        "?" in text,
        words <= 3,
        words <= 6,
        words > 12,
        text.count(",") > 1,
    ]
