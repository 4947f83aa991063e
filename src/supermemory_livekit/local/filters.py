"""The API's metadata filters: conditions under AND and OR, of any depth."""

from __future__ import annotations

from collections.abc import Sequence

from .records import Metadata
from .schemas import AllOf, AnyOf, Condition, Filter

__all__ = ["matches"]


def matches(rule: Filter | None, metadata: Metadata) -> bool:
    """Whether a thing with this metadata passes. No rule passes everything."""
    if rule is None:
        return True
    if isinstance(rule, AllOf):
        return all(matches(part, metadata) for part in rule.parts)
    if isinstance(rule, AnyOf):
        return any(matches(part, metadata) for part in rule.parts)
    return _holds(rule, metadata.get(rule.key)) is not rule.negated


def _holds(rule: Condition, value: str | int | float | bool | Sequence[str] | None) -> bool:
    if value is None:
        return False
    wanted = rule.value
    if rule.filter_type == "numeric":
        return _compares(rule.numeric_operator, value, wanted)
    if rule.filter_type == "array_contains":
        return not isinstance(value, (str, int, float)) and any(_same(rule, item, wanted) for item in value)
    text = _plain(value)
    if rule.filter_type == "string_contains":
        return wanted.casefold() in text.casefold() if rule.ignores_case else wanted in text
    return _same(rule, text, wanted)


def _same(rule: Condition, left: str, right: str) -> bool:
    return left.casefold() == right.casefold() if rule.ignores_case else left == right


def _plain(value: str | int | float | bool | Sequence[str]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _compares(operator: str, value: object, wanted: str) -> bool:
    try:
        left, right = float(str(value)), float(wanted)
    except ValueError:
        return False
    return {
        "=": left == right,
        ">": left > right,
        "<": left < right,
        ">=": left >= right,
        "<=": left <= right,
    }[operator]
