"""What the rules know of each language, read from `languages/*.txt`.

A file holds one entry a line. An entry that occurs more than once has alternatives. Patterns are regular expressions,
matched without regard to case.

    common: WORDS              by which the language is recognised
    define NAME: PATTERN       `@NAME@` in later patterns stands for it
    first: PATTERN             the caller speaks of themselves or of theirs
    unreal: PATTERN            a hypothetical, a wish, a guess or irony
    hearsay: PATTERN           somebody else's claim
    talk: PATTERN              talk about the call itself, and courtesies
    asks: PATTERN              a question in the form of a statement: "I wanted to know …"
    introduces: PATTERN        the caller says who they are: "hi it's Ana"
    take_back: PATTERN         a joke, or a wish not to be remembered: what was said just before is not kept
    forget: PATTERN            a wish to forget what the group `what` names
    request: PATTERN           a question that asks for something to be booked or ordered
    topic SLOT FLAGS: PATTERN  a kind of fact. `-` in SLOT is a space, `{what}` is filled with the pattern's group

Flags of a topic: `single` when facts of the slot take each other's place; `passing` for events, orders and plans;
`unsure` when the classifier may overrule it ("my dog is barking" says nothing of the dog); `always` when it need not
speak of the caller (an e-mail address spelled out).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .sentences import normal

__all__ = ["Language", "Topic", "language_of", "languages"]

_CODES = ("en", "de", "es", "fr", "pt", "it", "nl")
"""English first: it is taken when nothing speaks for another."""

_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True)
class Topic:
    """A kind of fact that is recognised by how it is said."""

    slot: str
    pattern: re.Pattern[str]
    static: bool
    single: bool
    sure: bool
    always: bool

    def slot_in(self, text: str) -> str | None:
        """The slot that `text` fills, or None when it is not of this kind."""
        found = self.pattern.search(text)
        if found is None:
            return None
        what = found.groupdict().get("what") or ""
        return self.slot.replace("{what}", what.casefold().strip()).strip()


@dataclass(frozen=True)
class Language:
    code: str
    common: frozenset[str]
    first: re.Pattern[str]
    unreal: re.Pattern[str]
    hearsay: re.Pattern[str]
    talk: re.Pattern[str]
    asks: re.Pattern[str]
    introduces: re.Pattern[str]
    take_back: re.Pattern[str]
    request: re.Pattern[str]
    forget: tuple[re.Pattern[str], ...]
    topics: tuple[Topic, ...]


@lru_cache(maxsize=1)
def languages() -> tuple[Language, ...]:
    """Every language, English first."""
    folder = resources.files(__package__ or "") / "languages"
    return tuple(_read(code, (folder / f"{code}.txt").read_text(encoding="utf-8")) for code in _CODES)


def language_of(text: str, default: Language) -> Language:
    """The language whose words and ways of stating facts occur most in `text`; `default` when none stands out."""
    words = normal(text).split()
    known = languages()
    scores = {
        language.code: sum(word in language.common for word in words)
        + 2 * any(topic.sure and topic.pattern.search(text) for topic in language.topics)
        + 2 * (language.introduces.search(text) is not None)
        for language in known
    }
    best = max(scores.values())
    # By code: two threads that ask first at the same moment have different objects of each language.
    if scores[default.code] == best:
        return default
    return next(language for language in known if scores[language.code] == best)


def _read(code: str, text: str) -> Language:
    entries: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    topics: list[Topic] = []
    for row in text.splitlines():
        if not row or row.startswith("#"):
            continue
        key, value = row.split(": ", 1)
        for name, pattern in names.items():
            value = value.replace(f"@{name}@", pattern)
        kind, *details = key.split()
        if kind == "define":
            names[details[0]] = value
        elif kind == "topic":
            topics.append(_topic(details, value))
        else:
            entries.setdefault(kind, []).append(value)

    def any_of(kind: str) -> re.Pattern[str]:
        return _compile("|".join(entries[kind])) if kind in entries else _NEVER

    return Language(
        code=code,
        common=frozenset(" ".join(entries["common"]).split()),
        first=any_of("first"),
        unreal=any_of("unreal"),
        hearsay=any_of("hearsay"),
        talk=any_of("talk"),
        asks=any_of("asks"),
        introduces=any_of("introduces"),
        take_back=any_of("take_back"),
        request=any_of("request"),
        forget=tuple(map(_compile, entries.get("forget", ()))),
        topics=tuple(topics),
    )


def _topic(details: Iterable[str], pattern: str) -> Topic:
    slot, *flags = details
    return Topic(
        slot=slot.replace("-", " "),
        pattern=_compile(pattern),
        static="passing" not in flags,
        single="single" in flags,
        sure="unsure" not in flags,
        always="always" in flags,
    )


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
