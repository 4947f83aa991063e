"""InputParams: what to recall and how to store a call. Checked once, at construction."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails
from typing_extensions import Self

from .errors import ConfigurationError

__all__ = ["InputParams", "Redactor"]

Redactor: TypeAlias = Callable[[str], "str | Awaitable[str | None] | None"]
"""Changes a text before anything is done with it, or drops it: None, or a blank text."""


class InputParams(BaseModel, frozen=True):  # given here, because type checkers read it here
    """Settings of one memory. Frozen and keyword-only; every field has a default.

    Raises:
        ConfigurationError: A value is of the wrong kind or out of bounds, or there is no such field. The
            message names the field and what it takes.
    """

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    mode: Literal["profile", "query", "full"] = "full"
    """What is recalled before a reply: the caller's profile, what bears on their words, or both ("full")."""

    search_limit: Annotated[int, Field(ge=1, le=100)] = 10
    """Most search results shown to the model in one turn. From 1 to 100."""

    search_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Least similarity of a search result that is shown. From 0 to 1."""

    recall_timeout: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 2.0
    """Most seconds a reply waits for recall. Above 0, at most 60."""

    capture: Literal["always", "consent", "never"] = "always"
    """Whether the call is stored. "consent": nothing is stored or recalled until `memory.consent(True)`. "never"
    leaves recall and the memory tools as they are."""

    capture_dreaming: Literal["instant", "dynamic"] = "instant"
    """When the stored call becomes memories: each write at once ("instant": usually within a minute, for one
    more billed operation per write) or on the schedule of the service ("dynamic": usually 10 to 20 min)."""

    mirror: bool = True
    """Whether the caller's memory is loaded ahead and held in this process during the call, so that recall waits for
    no service. Off, or where the service refuses to list memories, every turn asks the service."""

    spool_dir: Annotated[str, Field(min_length=1)] | Path | None = None
    """Directory that keeps what is said until the service has it, for the next process to deliver should this
    one be killed. None keeps it in memory alone."""

    redact: Annotated[Redactor | None, WithJsonSchema({"format": "function"})] = None
    """Function, sync or async, that takes each text on its way to the memory and returns it changed, or None to drop
    it: what is said, what is searched for, and what the tools are given. A sync one runs in a worker thread."""

    off_the_record_tools: bool = False
    """Whether the model has the tools `go_off_the_record` and `go_on_the_record`, for callers who ask for it."""

    anonymous: Literal["nothing", "call"] = "nothing"
    """What is kept of a caller whose identity is nobody's, such as that of a withheld number: "nothing", or a memory
    for this "call" alone."""

    follow: bool = False
    """Whether another participant who takes the line is bound in place of the first one. Otherwise nothing is stored
    or recalled until `bind` names them."""

    @model_validator(mode="wrap")
    @classmethod
    def _report_as_configuration_error(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # Pydantic lets any exception through but ValueError and AssertionError; this is neither.
        try:
            return handler(data)
        except ValidationError as error:
            problems = [_problem(cls, details) for details in error.errors(include_url=False)]
            raise ConfigurationError("; ".join(dict.fromkeys(problems))) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with the values of `update`, checked as at construction (Pydantic's own checks nothing)."""
        return type(self)(**{**self.model_dump(), **(update or {})})


def _problem(model: type[InputParams], details: ErrorDetails) -> str:
    """One line on one wrong field."""
    if not details["loc"]:
        return f"{model.__name__} takes keyword arguments, not {type(details['input']).__name__}"
    name = str(details["loc"][0])
    if name not in model.model_fields:
        # The value is not shown: a key or a tag may have been passed by mistake.
        return f"{model.__name__} has no field {name!r}{_hint(name, model.model_fields)}"
    schema: dict[str, Any] = model.model_json_schema()["properties"][name]
    given = details["input"]
    choices = schema.get("enum", [])
    hint = _hint(given.strip().lower(), choices) if isinstance(given, str) else ""
    return f"{name} takes {_kind(schema)}, not {_shown(given)}{hint}"


def _kind(schema: Mapping[str, Any]) -> str:
    """What a field takes, read from its JSON schema so that bounds are written down once."""
    if "enum" in schema:
        return "one of " + ", ".join(f'"{choice}"' for choice in schema["enum"])
    if "anyOf" in schema:
        return "a path or None"
    if schema.get("format") == "function":
        return "a function or None"
    kinds = {"integer": "a whole number", "number": "a number", "boolean": "True or False"}
    words = [kinds.get(schema.get("type", ""), "another kind of value")]
    if "exclusiveMinimum" in schema:
        words.append(f"above {schema['exclusiveMinimum']:g}")
    if "minimum" in schema:
        words.append(f"from {schema['minimum']:g}")
    if "maximum" in schema:
        words.append(f"up to {schema['maximum']:g}")
    return " ".join(words)


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float, str)):
        return f"{reprlib.repr(value)} ({type(value).__name__})"
    return type(value).__name__


def _hint(given: str, known: Any) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""
