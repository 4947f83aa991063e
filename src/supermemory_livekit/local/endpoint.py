"""From an HTTP request to a checked `Ask`, and from a `Reply` or a fault back to HTTP.

An `Endpoint` says what a route takes and gives; `Endpoint.route` serves it over an engine. Every answer is
JSON (a profile may be Markdown), errors included, and no answer or log line repeats what a client sent.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from .database import StorageError, StorageUnavailable
from .engine import Engine, Operations
from .faults import Fault, Refused, TooLarge, Unsupported

__all__ = [
    "MAX_BODY",
    "AnyPath",
    "Ask",
    "Endpoint",
    "NoBody",
    "Reply",
    "checked",
    "json_response",
    "refused",
]

logger = logging.getLogger("supermemory_livekit.local")

MAX_BODY = 16_000_000
"""Most bytes of a request body."""

_FREE_FORM = ("metadata", "filterByMetadata", "filters", "filter", "group")

Body = TypeVar("Body", bound=BaseModel)


class NoBody(BaseModel):
    """For routes that take none; what a client sends anyway is not looked at."""


class AnyPath(BaseModel):
    """Path parameters that need no check: what they name is there or not."""


@dataclass(frozen=True)
class Ask(Generic[Body]):
    """A request that has been checked."""

    body: Body
    path: dict[str, str]
    query: dict[str, str]
    accept: str = ""
    """Media types the client asks for, as it wrote them."""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: object = None
    """JSON; a string when there is another `media_type`."""
    media_type: str = "application/json"


@dataclass(frozen=True)
class Endpoint:
    """One route: what it takes, what it gives, and the function between them, whose docstring describes it."""

    method: str
    path: str
    kind: Literal["read", "write"]
    answer: Callable[[Operations, Ask[Any]], Reply]
    body: type[BaseModel] = NoBody
    body_optional: bool = False
    """Whether no body at all means an empty one."""
    parameters: type[BaseModel] = AnyPath
    """Checks the path parameters."""
    query: type[BaseModel] | None = None
    """What the query may hold; `answer` checks it."""
    gives: Any = None
    """The type of the answer's body. None for no body."""
    status: int = 200
    also: str | None = None
    """Another media type that a client may ask for."""

    def route(self, engine: Engine) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _guarded(lambda: self._answered(engine, request))

        return Route(self.path, endpoint, methods=[self.method])

    async def _answered(self, engine: Engine, request: Request) -> Response:
        raw = b"" if self.body is NoBody else await _read_body(request)
        if self.body_optional and not raw.strip():
            raw = b"{}"
        path = {name: str(value) for name, value in request.path_params.items()}
        # A list may be given with commas or by naming the parameter again.
        names = request.query_params.keys()
        query = {name: ",".join(request.query_params.getlist(name)) for name in names}
        accept = request.headers.get("accept", "")

        def work(operations: Operations) -> Response:
            checked(self.parameters, path)
            body = self.body() if self.body is NoBody else _parse(raw, self.body)
            reply = self.answer(operations, Ask(body, path, query, accept))
            if isinstance(reply.body, str):
                return Response(reply.body.encode(), reply.status, media_type=reply.media_type)
            return json_response(reply.status, reply.body)

        return await (engine.read(work) if self.kind == "read" else engine.write(work))


def checked(schema: type[Body], value: object) -> Body:
    """The value as this schema has it.

    Raises `Refused`, which names the fields and what they take.
    """
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise refused(error) from None
    except RecursionError:
        raise Refused("Invalid request parameters", "the body is nested too deeply") from None


def refused(error: ValidationError) -> Refused:
    """Names the fields and what they take, never the value that was sent."""
    problems: list[str] = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False)[:5]:
        unknown = problem["type"] == "extra_forbidden"
        place = _place(problem["loc"][:-1] if unknown else problem["loc"])
        problems.append(f"{place}: {'has a key that is not known here' if unknown else problem['msg']}")
    return Refused("Invalid request parameters", "; ".join(problems))


def json_response(status: int, body: object) -> Response:
    if status == 204:
        return Response(status_code=204)
    return Response(
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
        status,
        media_type="application/json",
    )


async def _guarded(answered: Callable[[], Awaitable[Response]]) -> Response:
    try:
        return await answered()
    except Fault as fault:
        details = {"details": fault.details} if fault.details else {}
        return json_response(fault.status, {"error": fault.error, **details})
    except ClientDisconnect:
        return Response(status_code=400)
    except StorageUnavailable as error:
        logger.error("%s", error)
        return json_response(503, {"error": "The storage cannot be used now", "details": str(error)})
    except StorageError as error:
        logger.error("%s", error)
        return json_response(503, {"error": "The storage cannot be used", "details": str(error)})
    except Exception as error:  # noqa: BLE001 - a traceback may show what a caller said
        logger.error("a request failed: %s", type(error).__name__)
        return json_response(500, {"error": "Internal server error"})


async def _read_body(request: Request) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > MAX_BODY:
        raise TooLarge("Request body too large")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise TooLarge("Request body too large")
        parts.append(part)
    raw = b"".join(parts)
    # A form on a page of another site can send any other type without asking the browser's leave first.
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and media_type != "application/json":
        raise Unsupported("Unsupported media type", "the body has to be application/json")
    return raw


def _parse(raw: bytes, schema: type[BaseModel]) -> BaseModel:
    try:
        value = _without_surrogates(json.loads(raw, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        raise Refused("Invalid request parameters", "the body is not valid JSON") from None
    return checked(schema, value)


def _place(location: tuple[int | str, ...]) -> str:
    """The field, without the keys that a client makes up."""
    free = [index for index, part in enumerate(location) if part in _FREE_FORM]
    return ".".join(str(part) for part in location[: free[0] + 1 if free else None]) or "body"


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _without_surrogates(value: Any) -> Any:
    """JSON can spell half of a UTF-16 pair, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in pairs}
    return value
