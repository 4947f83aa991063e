"""When two texts are one fact."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["exact_form", "norm_form"]

_DATE_PREFIX = re.compile(r"^\s*\[\d{4}-\d{2}-\d{2}\]\s*")


def exact_form(text: str) -> str:
    """What "the exact text" of a memory means: space around it, case and a leading `[date]` do not count."""
    return _DATE_PREFIX.sub("", text).strip().casefold()


def norm_form(text: str) -> str:
    """Texts of one norm are one fact: inner space, width of letters and a final stop do not count either."""
    folded = unicodedata.normalize("NFKC", exact_form(text)).casefold()
    return " ".join(folded.split()).rstrip(".!。 ") or folded
