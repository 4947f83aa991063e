"""The API's metadata filters: conditions under AND and OR, of any depth, as they are sent and what passes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from .fields import Flag, Strict
from .records import Metadata

__all__ = ["AllOf", "AnyOf", "Condition", "Filter", "Filters", "matches"]


class Condition(Strict):
    """One condition on one key of the metadata."""

    key: str
    value: str
    filter_type: Literal["metadata", "numeric", "array_contains", "string_contains"] = "metadata"
    negate: Flag = False
    ignore_case: Flag = False
    numeric_operator: Literal[">", "<", ">=", "<=", "="] = "="

    @property
    def negated(self) -> bool:
        return self.negate in (True, "true")

    @property
    def ignores_case(self) -> bool:
        return self.ignore_case in (True, "true")


class AllOf(Strict):
    parts: list[Filter] = Field(alias="AND")


class AnyOf(Strict):
    parts: list[Filter] = Field(alias="OR")


def _filter(value: object) -> object:
    """A filter may come as a JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("must be a filter, or a filter as JSON") from None


Filter = AllOf | AnyOf | Condition
Filters = Annotated[Filter, BeforeValidator(_filter)]

AllOf.model_rebuild()
AnyOf.model_rebuild()


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
