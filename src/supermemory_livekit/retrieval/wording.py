"""The form in which a text is embedded.

Facts are stored in the third person ("Caller lives in Porto.") and asked for in the first ("where do I
live?"). Sentence encoders place the two apart, so both are put into the first person before they are
embedded. What is stored and shown stays as it is. Lines of a stored call lose their time and their label,
which say nothing about the topic.
"""

from __future__ import annotations

import re

__all__ = ["first_person", "split_stamp"]

_STAMP = re.compile(
    r"^\[(\d{4}-\d\d-\d\d)[^\]\n]{0,24}\][ \t]*(?:(?:Caller|Agent)(?: \([^)\n]{1,40}\))?:[ \t]*)?",
    re.MULTILINE,
)
_LABEL = re.compile(r"^(?:Caller|Agent|User|Assistant)(?: \([^)\n]{1,40}\))?:[ \t]+", re.MULTILINE)

_PERSON = r"(?:caller|user|customer)"
# "the caller" anywhere; a bare "Caller" only where a sentence starts, so that "my user name" stays whole.
_SUBJECT = rf"(?:\bthe {_PERSON}|(?:(?<=^)|(?<=[-*•.!?;:]\s)){_PERSON})\b"
_POSSESSIVE = re.compile(rf"{_SUBJECT}['’]s\b", re.IGNORECASE | re.MULTILINE)
_WITH_VERB = re.compile(rf"{_SUBJECT}\s+([a-z]+(?:['’]t)?)\b", re.IGNORECASE | re.MULTILINE)
_BARE = re.compile(_SUBJECT, re.IGNORECASE | re.MULTILINE)
_THEIR = re.compile(r"\btheir\b", re.IGNORECASE)

_IRREGULAR = {
    "is": "am",
    "isn't": "am not",
    "has": "have",
    "hasn't": "have not",
    "does": "do",
    "doesn't": "do not",
    "goes": "go",
}
_NO_VERB = frozenset({"always", "as", "his", "its", "sometimes", "this", "was"})


def first_person(text: str) -> str:
    """`text` as the caller would say it: "The caller's dog is Rex" becomes "my dog is Rex"."""
    said = _LABEL.sub("", _STAMP.sub("", text))
    rewritten = _POSSESSIVE.sub("my", said)
    rewritten = _WITH_VERB.sub(lambda match: f"I {_verb(match[1])}", rewritten)
    rewritten = _BARE.sub("I", rewritten)
    if rewritten != said:
        rewritten = _THEIR.sub("my", rewritten)
    return rewritten


def split_stamp(text: str) -> tuple[str, list[str]]:
    """`text` without times and labels of call lines, and their dates (`YYYY-MM-DD`), each once."""
    dates = list(dict.fromkeys(match[1] for match in _STAMP.finditer(text)))
    return _STAMP.sub("", text), dates


def _verb(word: str) -> str:
    plain = word.lower().replace("’", "'")
    if plain in _IRREGULAR:
        return _IRREGULAR[plain]
    if plain in _NO_VERB:
        return word
    if plain.endswith("ies") and len(plain) > 4:
        return plain[:-3] + "y"
    if plain.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return plain[:-2]
    if plain.endswith("s") and not plain.endswith(("ss", "us")) and len(plain) > 3:
        return plain[:-1]
    return word
