"""When something that is only for a time is over.

Understands what callers say of days: "tomorrow at nine", "next Friday", "on the twelfth of December", "in two weeks".
Nobody says a time zone, so everything lasts until noon (UTC) of the day after: no caller's day is over later.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone

__all__ = ["over_at"]

_NUMBERS = {
    word: n
    for n, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        start=1,
    )
} | {"a": 1, "an": 1, "a couple of": 2, "a few": 4}

_ORDINALS = {
    word: n
    for n, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
            "sixteenth",
            "seventeenth",
            "eighteenth",
            "nineteenth",
            "twentieth",
            "twenty-first",
            "twenty-second",
            "twenty-third",
            "twenty-fourth",
            "twenty-fifth",
            "twenty-sixth",
            "twenty-seventh",
            "twenty-eighth",
            "twenty-ninth",
            "thirtieth",
            "thirty-first",
        ],
        start=1,
    )
}

_WEEKDAYS = (
    "monday|montag|lunes|lundi|segunda|lunedì|maandag",
    "tuesday|dienstag|martes|mardi|terça|martedì|dinsdag",
    "wednesday|mittwoch|miércoles|mercredi|quarta|mercoledì|woensdag",
    "thursday|donnerstag|jueves|jeudi|quinta|giovedì|donderdag",
    "friday|freitag|viernes|vendredi|sexta|venerdì|vrijdag",
    "saturday|samstag|sonnabend|sábado|samedi|sabato|zaterdag",
    "sunday|sonntag|domingo|dimanche|domenica|zondag",
)
_DAY_NUMBER = {word: n for n, words in enumerate(_WEEKDAYS) for word in words.split("|")}
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]

_DAY = "|".join(sorted(_DAY_NUMBER, key=len, reverse=True))
_MONTH = "|".join(_MONTHS)
_ORDINAL = "|".join(sorted(_ORDINALS, key=len, reverse=True))
_NUMBER = "|".join(sorted(_NUMBERS, key=len, reverse=True))

_OVERMORROW = re.compile(
    r"\b(?:day after tomorrow|übermorgen|pasado mañana|après-demain|depois de amanhã|dopodomani|overmorgen)\b"
)
_TOMORROW = re.compile(
    r"\btomorrow\b|(?<!guten )\bmorgen\b(?! früh war)|(?<!la )(?<!esta )\bmañana\b|\bdemain\b|\bamanhã\b|"
    r"\bdomani\b"
)
_TODAY = re.compile(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening)|heute|hoy|esta (?:noche|tarde)|aujourd'hui|"
    r"ce soir|hoje|oggi|"
    r"stasera|vandaag|vanavond)\b"
)
_WEEKEND = re.compile(r"\bthis weekend\b")
_NEXT = re.compile(r"\bnext (week|month|year)\b")
_IN = re.compile(rf"\b(?:in|for) (\d{{1,3}}|{_NUMBER}) (minute|hour|day|night|week|month)s?\b")
_ON_DAY = re.compile(rf"\b(next |nächsten |próximo |prochain )?({_DAY})\b(?! prochain)")
_DATE = re.compile(
    rf"\b(?:the )?(?:(\d{{1,2}})(?:st|nd|rd|th)?|({_ORDINAL})) (?:of )?({_MONTH})\b|"
    rf"\b({_MONTH}) (?:the )?(?:(\d{{1,2}})(?:st|nd|rd|th)?|({_ORDINAL}))\b"
)
_OF_MONTH = re.compile(rf"\b(?:on|until|till|by|for) the (?:(\d{{1,2}})(?:st|nd|rd|th)|({_ORDINAL}))\b")
_UNTIL = re.compile(
    r"\b(?:until|till?|through to|bis(?: zum)?|hasta(?: el)?|jusqu'(?:à|au)|até(?: à| ao)?|fino (?:a|al)|tot)\b"
)
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_PAST = re.compile(rf"\b(?:last|since|ago|yesterday|every|each)\b|\b(?:{_DAY})s\b")


def over_at(text: str, said: datetime) -> datetime | None:
    """Noon (UTC) after the day that `text`, said at `said`, speaks of; None when it names none to come."""
    words = text.casefold().replace("’", "'")
    if _PAST.search(words):
        return None
    day = _day(words, said)
    if day is None:
        return None
    return datetime.combine(day.date(), time(12), tzinfo=timezone.utc) + timedelta(days=1)


def _day(words: str, said: datetime) -> datetime | None:
    until = _UNTIL.search(words)
    end = _day(words[until.end() :], said) if until is not None else None
    if end is not None:  # "I'm away from Monday until Friday"
        return end
    if _OVERMORROW.search(words):
        return said + timedelta(days=2)
    dated = _date(words, said)
    if dated is not None:
        return dated
    if _TOMORROW.search(words):
        return said + timedelta(days=1)
    if _TODAY.search(words):
        return said
    if _WEEKEND.search(words):
        return said + timedelta(days=6 - said.weekday())
    found = _ON_DAY.search(words)
    if found is not None:
        ahead = (_DAY_NUMBER[found[2]] - said.weekday()) % 7
        # "Next Friday" is this week's for some and next week's for others: the later one does no harm.
        return said + timedelta(days=ahead + 7 if found[1] else ahead or 7)
    found = _IN.search(words)
    if found is not None:
        count = int(found[1]) if found[1].isdigit() else _NUMBERS[found[1]]
        unit = {"minute": 0, "hour": 0, "day": 1, "night": 1, "week": 7, "month": 31}[found[2]]
        return said + timedelta(days=count * unit or 1)
    found = _NEXT.search(words)
    if found is not None:
        return said + timedelta(days={"week": 13 - said.weekday(), "month": 61, "year": 730}[found[1]])
    return None


def _date(words: str, said: datetime) -> datetime | None:
    found = _ISO.search(words)
    if found is not None:
        try:
            return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=timezone.utc)
        except ValueError:
            return None
    found = _DATE.search(words)
    if found is not None:
        number = found[1] or found[5]
        day = int(number) if number else _ORDINALS[found[2] or found[6]]
        month = _MONTHS.index(found[3] or found[4]) + 1
        return _coming(said, day, month)
    found = _OF_MONTH.search(words)
    if found is not None:
        return _coming(said, int(found[1]) if found[1] else _ORDINALS[found[2]], None)
    return None


def _coming(said: datetime, day: int, month: int | None) -> datetime | None:
    """The next such date that is not before the day of `said`."""
    year, at = said.year, month or said.month
    for _ in range(12):
        try:
            date = datetime(year, at, day, tzinfo=timezone.utc)
        except ValueError:
            date = None  # the 31st of a shorter month
        if date is not None and date.date() >= said.date():
            return date
        if month is None and at < 12:
            at += 1
        else:
            year, at = year + 1, month or 1
    return None
