"""How a new fact stands to what is known: the same, a newer version, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from supermemory_livekit.retrieval.wording import first_person

from .language import languages
from .sentences import content_words, normal
from .types import Known

__all__ = ["declarative", "named_in", "negated", "replaced_by", "same_as", "single_slots", "swapped"]

_NEGATION = re.compile(
    r"\b(?:not|no|never|don't|doesn't|didn't|isn't|aren't|wasn't|can't|cannot|won't|stopped|quit|gave up|"
    r"given up|"
    r"nicht|nicht mehr|kein\w*|nie|non|pas|jamais|plus|não|nunca|mai|niet|geen|nooit)\b",
    re.IGNORECASE,
)
_NO_MORE = re.compile(
    r"\b(?:any ?more|no longer|stopped|quit|gave up|given up|used to|not \w+ now|nicht mehr|"
    r"kein\w* \w+ mehr|ya no|"
    r"ne \w+ plus|non \w+ più|não \w+ mais|já não|niet meer|geen \w+ meer)\b",
    re.IGNORECASE,
)
_NOT_A_TOPIC = frozenset(["stop", "stopp", "quit", "gav", "giv", "up", "used"])
_FORMER = re.compile(r"\bused to\b|\bformer(?:ly)?\b|\bbefore\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;.]\s")
_ASKED = re.compile(r'^Asked "(?P<question>.*?)": ', re.DOTALL)


def single_slots(text: str) -> frozenset[str]:
    """Slots that `text` fills and that hold one value at a time: a home, a phone number, a favourite colour."""
    said = first_person(text)
    asked = _ASKED.match(said)
    if asked is not None:
        said = f"{declarative(asked['question'])} {said[asked.end() :]}"
    if _FORMER.search(said):
        return frozenset()
    slots = (topic.slot_in(said) for language in languages() for topic in language.topics if topic.single)
    return frozenset(slot for slot in slots if slot is not None)


def negated(text: str) -> bool:
    """Whether the statement is a negation."""
    return _NEGATION.search(text.replace("’", "'")) is not None


def same_as(text: str, other: str) -> bool:
    """Whether `text` adds nothing to `other`: the same words in substance, with the same sense."""
    said, told = first_person(text), first_person(other)
    if normal(said) == normal(told):
        return True
    if negated(said) != negated(told):
        return False
    words = content_words(said)
    return len(words) > 1 and words == content_words(told)


def replaced_by(text: str, known: Sequence[Known]) -> tuple[str, ...]:
    """Ids of what `text` takes the place of: the older value of its slot, or the opposite of what it says."""
    slots = single_slots(text)
    return tuple(it.id for it in known if slots & single_slots(it.text) or _contradicts(text, it.text))


def _contradicts(text: str, other: str) -> bool:
    said, told = first_person(text), first_person(other)
    if negated(said) == negated(told):
        return False
    no_more = _NO_MORE.search(said) is not None
    if no_more:
        said = next(part for part in _CLAUSE_END.split(said) if _NO_MORE.search(part) or part is not None)
    words = content_words(said) - _NOT_A_TOPIC
    shared = words & content_words(told)
    if not shared:
        return False
    return len(shared) * 2 > len(words) if no_more else words == content_words(told)


def named_in(what: str, known: Sequence[Known]) -> tuple[str, ...]:
    """Ids of the memories that a wish to forget `what` ("my old address", "that I like tea") speaks of."""
    words = content_words(what) - {
        "old",
        "information",
        "detail",
        "record",
        "data",
        "file",
        "system",
        "memory",
        "pleas",
    }
    topics = {topic for word in words for topic in _MEANT.get(word, (word,))}
    if not words:
        return ()
    found: list[str] = []
    for it in known:
        told = content_words(first_person(it.text))
        slots = {word for slot in single_slots(it.text) for word in (slot, *slot.split())}
        if topics & slots or (words <= told):
            found.append(it.id)
    return tuple(found)


# What a caller calls a slot. The keys are in the form of `content_words`.
_MEANT: dict[str, tuple[str, ...]] = {
    "addres": ("address", "home"),
    "address": ("address", "home"),
    "home": ("home", "address"),
    "work": ("job",),
    "employer": ("job",),
    "job": ("job",),
    "numb": ("phone number",),
    "number": ("phone number",),
    "birth": ("birthday",),
    "nam": ("name", "surname", "nickname"),
    "name": ("name", "surname", "nickname"),
    "adresse": ("address", "home"),
    "dirección": ("address", "home"),
    "endereço": ("address", "home"),
    "indirizzo": ("address", "home"),
    "adre": ("address", "home"),
}


def swapped(old: str, new: str, text: str) -> str | None:
    """`text` with `old` corrected to `new` ("41 Oak Street, not 14"), or None when `old` is not in it."""
    if _word(old).search(text) is None:
        return None
    parts = new.split()
    for i, part in enumerate(parts):
        before = " ".join([*parts[:i], old, *parts[i + 1 :]])
        if len(parts) > 1 and part != old and _word(before).search(text):
            return _word(before).sub(lambda _: new, text, count=1)
    return _word(old).sub(lambda _: new, text, count=1)


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)


_AS_TOLD: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), told)
    for pattern, told in (
        (r"^(?:and |so |okay,? )+", ""),
        (
            r"^(?:the |your |a )?(?P<rest>(?:\w+ )?(?:name|number|address|e-?mail|birthday)),? ?(?:please)?\?",
            r"My \g<rest> is",
        ),
        (r"^(?:are|were) you\b", "I am"),
        (r"^(?:do|did|have|would|can) you(?: have)?\b", "I have"),
        (r"^(?:what|which|who)(?:'s| is| was| are) your\b(?P<rest>[^?]*)\??", r"My\g<rest> is"),
        (r"^(?:can|could|may) i (?:have|get|take) your\b(?P<rest>[^?]*)\??", r"My\g<rest> is"),
        (r"^where do you\b", "I"),
        (r"^what do you do\b[^?]*\??", "My job is"),
        (r"^how old are you\b", "I am years old"),
        (r"\byou(?:'re| are)\b", "I am"),
        (r"\byou(?:'ve| have)\b", "I have"),
        (r"\byour\b", "my"),
        (r"\byou\b", "I"),
        (r",? (?:right|correct|is that (?:right|correct)|aren't i|don't i)\?$", "."),
        (r"\bany\b ?", ""),
    )
)


def declarative(question: str) -> str:
    """An agent's question as the caller's statement: "Are you vegetarian?" becomes "I am vegetarian"."""
    told = question.strip()
    for pattern, replacement in _AS_TOLD:
        told = pattern.sub(replacement, told, count=1)
    return told.rstrip("? ")
