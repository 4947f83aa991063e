"""How a new fact stands to what is known: the same, a newer version, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from supermemory_livekit.retrieval.wording import first_person

from .language import languages
from .sentences import content_words, normal

__all__ = ["Told", "confirms", "declarative", "named_in", "replaced_by", "restates", "same_as", "swapped"]

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
_UNCHANGED = re.compile(r"\b(?:wrong|incorrect|correct|the same|still|unchanged|missing)\b", re.IGNORECASE)
_LONGEST_VALUE = 4
"""Words of what may stand in for another value."""
_CLAUSE_END = re.compile(r"[,;.]\s")
_YES = frozenset(
    ["yes", "ye", "yeah", "yep", "yup", "ja", "sí", "si", "oui", "sim", "sì", "that's", "right", "correct"]
)
_ASKED = re.compile(r'^Asked "(?P<question>.*?)": ', re.DOTALL)


@dataclass(frozen=True)
class Told:
    """A statement, and what is compared of it: each worked out once, since it is compared with many."""

    text: str
    id: str = ""
    """Of the memory that it is, if it is one."""

    @cached_property
    def said(self) -> str:
        """In the first person, so that "Caller lives in Porto" and "I live in Porto" are one."""
        return first_person(self.text)

    @cached_property
    def normal(self) -> str:
        return normal(self.said)

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.said)

    @cached_property
    def negated(self) -> bool:
        return _NEGATION.search(self.said.replace("’", "'")) is not None

    @cached_property
    def slots(self) -> frozenset[str]:
        """Slots that it fills and that hold one value at a time: a home, a phone number, a favourite colour."""
        said = self.said
        asked = _ASKED.match(said)
        if asked is not None:
            said = f"{declarative(asked['question'])} {said[asked.end() :]}"
        if _FORMER.search(said) or _UNCHANGED.search(said):
            return frozenset()
        slots = (topic.slot_in(said) for language in languages() for topic in language.topics if topic.single)
        return frozenset(slot for slot in slots if slot is not None)


def same_as(new: Told, other: Told) -> bool:
    """Whether `new` adds nothing to `other`: the same words in substance, with the same sense."""
    if new.normal == other.normal:
        return True
    return new.negated == other.negated and len(new.words) > 1 and new.words == other.words


def confirms(new: Told, known: Told) -> bool:
    """Whether `new` only says yes to `known`, or says a part of it again: "Still in Porto?" - "Yes, Porto"."""
    if new.negated != known.negated or new.slots - known.slots or not known.words:
        return False
    asked = _ASKED.match(new.text)
    if asked is None:
        return len(new.words) > 1 and new.words <= known.words
    answer = content_words(new.text[asked.end() :]) - _YES
    return answer <= known.words and known.words <= content_words(asked["question"]) | answer


def replaced_by(new: Told, known: Sequence[Told]) -> tuple[str, ...]:
    """Ids of what `new` takes the place of: the older value of its slot, or the opposite of what it says."""
    return tuple(it.id for it in known if new.slots & it.slots or _contradicts(new, it))


def restates(new: Told, other: Told) -> bool:
    """Whether both say the same of the same thing up to the value: "My dog is called Rex" and "… called Max".

    Whoever says that something was wrong and then says it anew means the one that begins like it.
    """
    words, others = new.normal.split(), other.normal.split()
    alike = next((i for i, (one, two) in enumerate(zip(words, others, strict=False)) if one != two), 0)
    about = content_words(" ".join(words[:alike]))
    return bool(about) and max(len(words), len(others)) - alike <= _LONGEST_VALUE


def _contradicts(new: Told, other: Told) -> bool:
    if new.negated == other.negated:
        return False
    if _NO_MORE.search(new.said) is None:
        return bool(new.words) and new.words == other.words
    clause = next((part for part in _CLAUSE_END.split(new.said) if _NO_MORE.search(part)), new.said)
    words = content_words(clause) - _NOT_A_TOPIC
    return len(words & other.words) * 2 > len(words)


def named_in(what: str, known: Sequence[Told]) -> tuple[str, ...]:
    """Ids of the memories that a wish to forget `what` ("my old address", "that I like tea") speaks of."""
    words = content_words(what) - _BESIDE_THE_POINT
    if not words:
        return ()
    meant = (
        {slot for word in words for slot in _MEANT.get(word, ())} if words <= _MEANT.keys() else set[str]()
    )
    by_slot = tuple(it.id for it in known if meant & it.slots)
    if by_slot:  # "my number" is the phone number, although other numbers are known
        return by_slot
    named = tuple(
        it.id for it in known if words <= it.words or any(words <= content_words(slot) for slot in it.slots)
    )
    short, comma, _ = what.partition(",")  # "my old address, the one in Lisbon please"
    return named if named or not comma else named_in(short, known)


_BESIDE_THE_POINT = frozenset(
    ["old", "information", "detail", "record", "data", "file", "system", "memory", "pleas"]
)

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
        (
            r"^who(?:'s| is| am i| do i)\b[^?]*\b(?:calling|speaking|talking|there|this|to|with)\b[^?]*\??",
            "My name is",
        ),
        (
            r"^(?:is (?:that|this)|am i \w+ (?:with|to)) (?P<who>(?:mr|mrs|ms|miss|dr|mister|madam|(?-i:[A-Z]))\w*)",
            r"My name is \g<who>",
        ),
        (r"^what (?:should|can|may|shall|do) (?:i|we) call you\b[^?]*\??", "My name is"),
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
