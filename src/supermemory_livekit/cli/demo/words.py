"""The little English that the stand-in language model knows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["common", "content_words", "second_person", "sentences", "stated"]

_EMPTY_WORDS = """
    a about all am an and any are as at be been but by can could did do does for from had has have he her his how i if
    in is it its know me mine my no not of on or our please she so some sorry tell that the their them they this to
    was we were what when where which who whose why will with would you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_SECOND = {
    "i": "you",
    "i'm": "you are",
    "i've": "you have",
    "i'll": "you will",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "am": "are",
}
_REQUEST = re.compile(r"^(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?[\s:,]+", re.IGNORECASE)
_CORRECTION = re.compile(r"^(?:sorry|no|actually|correction|wait)\b[^:?]*:\s*", re.IGNORECASE)
_NO_STATEMENT = re.compile(r"^(?:please|don't|do not|forget|hello|hi|thanks?|(?:good)?bye)\b", re.IGNORECASE)
_GREETING = re.compile(r"^(?:hello|hi|hey|good (?:morning|afternoon|evening))\s*[,!.]\s*", re.IGNORECASE)


def content_words(text: str) -> set[str]:
    """The words that carry meaning, without their endings."""
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.casefold().replace("\u2019", "'"))
    return {_stem(word) for word in words if word not in _EMPTY and word not in _SECOND}


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def common(question: set[str], text: str) -> float:
    """Which part of the question's words, 0 to 1, the text has too."""
    return len(question & content_words(text)) / len(question) if question else 0.0


def sentences(text: str) -> Iterator[str]:
    for sentence in re.split(r"(?<=[.!?])\s+", text.strip()):
        if sentence:
            yield sentence


def stated(text: str) -> list[str]:
    """What somebody states in these words, sentence by sentence: no question, no request, no greeting.

    Of "remember that" and "sorry, that was wrong:" only what follows. Last comes all of it together, since a second
    sentence often says "she" or "it" for what the first one names.
    """
    found = list(_statements(text))
    return [*found, " ".join(found)] if len(found) > 1 else found


def _statements(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        bare = _GREETING.sub("", sentence)
        bare = _CORRECTION.sub("", _REQUEST.sub("", bare)).strip()
        if bare and not bare.endswith("?") and not _NO_STATEMENT.match(bare):
            yield bare[0].upper() + bare[1:]


def second_person(statement: str) -> str:
    """The caller's statement as the agent says it to the caller."""
    text = re.sub(
        r"[^\W\d_]+(?:'[^\W\d_]+)?",
        lambda word: _SECOND.get(word.group().casefold(), word.group()),
        statement.replace("\u2019", "'"),
    )
    return re.sub(r"\byou was\b", "you were", text).rstrip(".! ") + "."
