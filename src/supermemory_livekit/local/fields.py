"""What the bodies of all requests are made of: names, texts, times and numbers, as the API takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, WithJsonSchema
from pydantic.alias_generators import to_camel

from .texts import parse_time, to_ms

__all__ = [
    "MAX_CONTENT",
    "Content",
    "CustomId",
    "Dreaming",
    "EntityContext",
    "Flag",
    "MemoryText",
    "MetadataMap",
    "MetadataValue",
    "Moment",
    "Page",
    "Strict",
    "Tag",
    "TaskType",
    "Unit",
    "count",
]

MAX_CONTENT = 1_000_000
"""Most bytes (UTF-8) of a text, as the API has it."""

Tag = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-zA-Z0-9_:-]+$")]
CustomId = Annotated[str, Field(min_length=1, max_length=255)]
EntityContext = Annotated[str, Field(max_length=1500)]
Dreaming = Literal["instant", "dynamic"]
TaskType = Literal["memory", "superrag"]
MetadataValue = StrictStr | bool | int | Annotated[float, Field(allow_inf_nan=False)] | list[str]
MetadataMap = dict[str, MetadataValue]
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Flag = bool | Literal["true", "false"]


def _content(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold something")
    if len(text) > MAX_CONTENT or len(text.encode()) > MAX_CONTENT:
        raise ValueError(f"must be at most {MAX_CONTENT} bytes")
    return text


def _moment(value: object) -> object:
    try:
        return to_ms(parse_time(value if isinstance(value, str) else ""))
    except (ValueError, OverflowError):
        raise ValueError("must be YYYY-MM-DD or an ISO 8601 timestamp") from None


def count(value: object) -> object:
    """A whole number may come as text, or with a fraction of nothing."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Content = Annotated[str, AfterValidator(_content)]
MemoryText = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_content)]
Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "description": "YYYY-MM-DD or an ISO 8601 timestamp"}),
]
"""Milliseconds since 1970; on the wire a date or a timestamp."""
Page = Annotated[int, BeforeValidator(count), Field(ge=1, le=1_000_000)]


class Strict(BaseModel):
    """Camel case on the wire; no other keys than these, no conversions, and no value repeated in an error."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, frozen=True, hide_input_in_errors=True
    )
