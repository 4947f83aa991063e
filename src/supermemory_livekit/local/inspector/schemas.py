"""What the page asks for. Everything is asked by POST: tags and words belong into no URL, which proxies log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from supermemory_livekit.local.fields import Tag

__all__ = [
    "AskCall",
    "AskCaller",
    "AskCallers",
    "AskCalls",
    "AskMemories",
    "AskMemory",
    "AskOverview",
    "AskRecalls",
    "AskSearch",
    "EraseCall",
    "EraseCaller",
    "Forget",
]

_Id = Annotated[str, Field(min_length=1, max_length=255)]
_Page = Annotated[int, Field(ge=1, le=1_000_000)]
_Find = Annotated[str, Field(max_length=200)]


class _Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class AskOverview(_Body):
    """How much is stored, and whether work waits."""


class AskCallers(_Body):
    find: _Find = ""
    page: _Page = 1
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class AskCaller(_Body):
    tag: Tag


class AskMemories(AskCaller):
    find: _Find = ""
    state: Literal["all", "held", "forgotten"] = "held"
    page: _Page = 1
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class AskMemory(AskCaller):
    id: _Id


class AskCalls(AskCaller):
    page: _Page = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 25


class AskCall(AskCaller):
    id: _Id
    page: _Page = 1
    """Of turns."""
    limit: Annotated[int, Field(ge=1, le=500)] = 200


class AskSearch(AskCaller):
    q: Annotated[str, Field(min_length=1, max_length=4_000)]
    mode: Literal["hybrid", "memories", "documents"] = "hybrid"
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.1


class Forget(AskCaller):
    id: _Id


class EraseCall(AskCaller):
    id: _Id


class EraseCaller(AskCaller):
    """A caller and everything under the tag."""


class AskRecalls(_Body):
    after: Annotated[int, Field(ge=0, le=2**53)] = 0
    """The number of the last one that the page has."""
