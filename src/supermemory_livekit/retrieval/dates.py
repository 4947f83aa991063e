"""Dates that a text names: "on May 3, 2023", "am 3. Mai", "in June", "2023-05-03", "5月3日"."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date

__all__ = ["Period", "periods"]

# A line a month: English, German, Spanish, French, Italian, Portuguese, Dutch.
_NAMES = """
    january januar jänner enero janvier gennaio janeiro januari
    february februar febrero février febbraio fevereiro februari
    march märz marzo mars março maart
    april abril avril aprile
    may mai mayo maggio maio mei
    june juni junio juin giugno junho
    july juli julio juillet luglio julho
    august agosto août augustus
    september septiembre septembre settembre setembro
    october oktober octubre octobre ottobre outubro
    november noviembre novembre novembro
    december dezember diciembre décembre dicembre dezembro
"""
_MONTHS = {
    name: number for number, names in enumerate(_NAMES.strip().splitlines(), 1) for name in names.split()
}
_MONTH = "|".join(_MONTHS)
_YEAR = r"(?:(?:,|\s+of|\s+de|\s+del)?\s+(?P<{}>\d{{4}}))?"
# A month or a year by itself may be another word or number, unless something before it says that it is a time.
_TIME = r"(?:in|of|during|since|until|by|last|this|im|seit|en|de|desde|depuis|em|nel|di|da|sinds)"
_DATE = re.compile(
    rf"(?P<iso_year>\d{{4}})-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)"
    rf"|(?:(?P<han_year>\d{{4}})\s*[年년]\s*)?(?P<han_month>\d{{1,2}})\s*[月월](?:\s*(?P<han_day>\d{{1,2}})\s*[日号號일])?"
    rf"|\b(?P<first_day>\d{{1,2}})(?:st|nd|rd|th|er|[.º°])?,?\s+(?:of\s+|de\s+)?(?P<last_month>{_MONTH})\b"
    + _YEAR.format("last_year")
    + rf"|\b(?P<first_month>{_MONTH})\s+(?P<last_day>\d{{1,2}})(?:st|nd|rd|th)?\b"
    + _YEAR.format("english_year")
    + rf"|\b(?P<month>{_MONTH})(?:,|\s+of|\s+de|\s+del)?\s+(?P<month_year>\d{{4}})\b"
    rf"|\b{_TIME}\s+(?P<lone_month>{_MONTH})\b(?!(?:,|\s+of|\s+de|\s+del)?\s+\d)"
    rf"|\b{_TIME}\s+(?P<lone_year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Period:
    """A day, a month or a year; what is not named is None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """First and last day as ordinals of `datetime.date`; without its year, in each from `first` to `last`."""
        years = range(first, last + 1) if self.year is None else (self.year,)
        found: list[tuple[int, int]] = []
        for year in years:
            month, until = self.month or 1, self.month or 12
            length = monthrange(year, until)[1]
            if self.day is None or self.day <= length:
                begin, end = date(year, month, self.day or 1), date(year, until, self.day or length)
                found.append((begin.toordinal(), end.toordinal()))
        return found

    def agrees(self, other: Period) -> bool:
        """Whether both may be one time: nothing that both name differs."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


def periods(text: str) -> list[Period]:
    """The days, months and years that `text` names, in order."""
    found: list[Period] = []
    for match in _DATE.finditer(text):
        parts: dict[str, int] = {}
        for name, value in match.groupdict().items():
            if value is not None:
                parts[name.rpartition("_")[2]] = int(value) if value.isdigit() else _MONTHS[value.casefold()]
        if (
            1 <= parts.get("year", 1) <= 9_998
            and 1 <= parts.get("month", 1) <= 12
            and 1 <= parts.get("day", 1) <= 31
        ):
            found.append(Period(parts.get("year"), parts.get("month"), parts.get("day")))
    return found
