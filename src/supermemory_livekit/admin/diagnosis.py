"""Checks whether the memory works from here: key, reach, clock, API, and a round trip under a tag of its own.

Where the service refuses, or has no such route, a few plain requests tell what is at fault: the key, the address, or an
SDK of the other generation of the API.

The round trip writes a sentence of ours under a container tag made for it, finds it again, and erases it. No tag of a
caller is asked for anything.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, TypeVar

import httpx

from supermemory_livekit.erasure.erasure import erase_caller
from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    NotFound,
    PaymentRequired,
    RequestRejected,
    ServiceError,
)
from supermemory_livekit.sdk.client import Client
from supermemory_livekit.sdk.unlogged import unlogged
from supermemory_livekit.store import Dreaming, MemoryStore

from .plain_words import ADDRESS, OLDER_SDK, Told, failure, problem

__all__ = ["Check", "State", "diagnose"]

T = TypeVar("T")

State = Literal["ok", "failed", "skipped"]

_REQUEST = 10.0
"""Seconds of one request, as long as a write of a call may take."""

_FOUND_WITHIN = 30.0
"""Seconds for the written sentence to be found by a search."""

_ERASED_WITHIN = 30.0

_SLOW = 2.0
"""Seconds: the default of `recall_timeout`, after which a reply does without its memory."""

_SKEW = 60.0
"""Seconds by which the clocks may differ. Lines of calls carry this machine's time, which tells how old they are."""

_SENTENCE = "The doctor of supermemory-livekit keeps seven purple bicycles."
_QUESTION = "seven purple bicycles"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    """What there is. Holds no key and no word of a caller."""
    advice: str = ""
    """What to do, when it failed."""


async def diagnose(
    store: MemoryStore, client: Client, *, key: bool, embedded: bool, round_trip: bool = True
) -> AsyncGenerator[Check]:
    """The checks, one after another.

    Args:
        store: What a call would use.
        client: The client below it, for what the store does not ask.
        key: Whether a key is set.
        embedded: Whether the service is the one in this process.
        round_trip: Whether to write, find and erase.
    """
    tag = f"doctor-{uuid.uuid4().hex}"
    reach = await _reach(store, client, tag, key=key, embedded=embedded)
    if reach.name != "key":
        yield _key(key=key, embedded=embedded, accepted=reach.state == "ok")
    yield reach
    if reach.state == "failed":
        for name in ("clock", "api", *(["round trip"] if round_trip else [])):
            if name != reach.name:
                yield Check(name, "skipped", "not looked at, since the service cannot be used")
        return
    yield await _clock(client)
    yield await _api(store, tag)
    if round_trip:
        async for check in _round_trip(store, tag):
            yield check


# -- reach, and the key ---------------------------------------------------------------------------------------------


async def _reach(store: MemoryStore, client: Client, tag: str, *, key: bool, embedded: bool) -> Check:
    """That the service answers as it should. Where it does not, the check is named after what is at fault."""
    try:
        _, first = await _timed(store.profile(tag, timeout=_REQUEST))
        _, seconds = await _timed(store.profile(tag, timeout=_REQUEST))
    except AccessDenied as error:
        if error.status == 403 and await _status(client, "GET", "/health") == 403:
            return _failed("reach", _refused_by_name(client))
        return _failed("key", failure(error, key=key))
    except (APIMismatch, NotFound) as error:
        if (other := await _other_generation(client, tag, error)) is not None:
            return _failed("api", other)
        return _failed("reach", _no_memory_service(client))
    except (ServiceError, NotImplementedError) as error:
        return _failed("reach", failure(error, key=key, embedded=embedded))
    found = f"answers in {_ms(seconds)}, {_ms(first)} with the connection"
    if seconds > _SLOW:
        return Check(
            "reach",
            "failed",
            found,
            "Replies would often do without memory: move the agent closer to the service, or raise"
            " InputParams(recall_timeout=...).",
        )
    return Check("reach", "ok", found)


def _key(*, key: bool, embedded: bool, accepted: bool) -> Check:
    """Where the key is from, when nothing says that it is at fault."""
    if embedded:
        return Check("key", "ok", "the embedded service needs none")
    source = "SUPERMEMORY_API_KEY is set" if key else "none is set"
    if not accepted:
        return Check("key", "skipped", source)
    return Check("key", "ok", f"{source}; accepted" if key else f"{source}, and none is asked for")


def _failed(name: str, told: Told) -> Check:
    return Check(name, "failed", told.found, told.advice)


def _refused_by_name(client: Client) -> Told:
    """Even what needs no key is refused: so it is not the key."""
    return Told(
        "everything asked from here is refused (403), also what needs no key",
        f"If it is `supermemory-livekit serve`: start it with --allow-host {client.address.host}. Otherwise a proxy"
        f" stands before the service; let it through, or check {ADDRESS}.",
    )


def _no_memory_service(client: Client) -> Told:
    """Something answers, and knows the routes of neither generation of the API."""
    path = client.address.path.strip("/")
    advice = f"Leave the path /{path} out of {ADDRESS}." if path else f"Correct host and port in {ADDRESS}."
    return Told("what answers there is no Supermemory: it has no route of the API (404)", advice)


async def _other_generation(client: Client, tag: str, error: ServiceError) -> Told | None:
    """What to install, when the service speaks the generation of the API that the SDK does not."""
    sdk = _sdk_version()
    if isinstance(error, APIMismatch):
        for path, body in (
            ("/v4/profile", {"containerTag": tag}),
            ("/v3/documents/list", {"containerTags": [tag], "limit": 1}),
        ):
            if _is_a_route(await _status(client, "POST", path, body)):
                return Told(
                    f"the service speaks v3/v4 of the API, the installed supermemory {sdk} v5 alone",
                    OLDER_SDK,
                )
        return None
    if _is_a_route(await _status(client, "POST", f"/ns/{tag}/profile", {})):
        return Told(
            f"the service speaks v5 of the API, the installed supermemory {sdk} v3/v4 alone",
            'pip install "supermemory>=5,<6"',
        )
    return None


def _is_a_route(status: int | None) -> bool:
    """Whether something of the API answered, be it that a key is missing or the request is wrong."""
    return status is not None and status not in (404, 405) and not 300 <= status < 400 and status < 500


async def _status(client: Client, method: str, path: str, body: object = None) -> int | None:
    try:
        with unlogged():
            return (await client.ask(method, path, body, timeout=_REQUEST)).status_code
    except httpx.HTTPError:
        return None


# -- the clock --------------------------------------------------------------------------------------------------------


async def _clock(client: Client) -> Check:
    asked = time.time()
    told = await _date(client)
    if told is None:
        return Check("clock", "skipped", "the service does not tell its time")
    # A Date header has whole seconds.
    off = max(0.0, abs((asked + time.time()) / 2 - told) - 1.0)
    found = f"differs by less than {off + 1:.0f} s from the service's"
    if off > _SKEW:
        return Check(
            "clock",
            "failed",
            f"{off:.0f} s off the service's",
            "Set this machine's clock (NTP): the lines of calls carry its time, and their age is told by it.",
        )
    return Check("clock", "ok", found)


async def _date(client: Client) -> float | None:
    """The service's time in seconds since 1970, from the header of whatever it answers."""
    try:
        response = await client.ask("GET", "/", timeout=_REQUEST)
    except httpx.HTTPError:
        return None
    parsed = email.utils.parsedate_tz(response.headers.get("date"))
    return None if parsed is None else float(email.utils.mktime_tz(parsed))


# -- the API ----------------------------------------------------------------------------------------------------------


async def _api(store: MemoryStore, tag: str) -> Check:
    requests: dict[str, Callable[[], Awaitable[object]]] = {
        "search": lambda: store.search(
            tag, _QUESTION, limit=1, threshold=0.5, mode="hybrid", timeout=_REQUEST
        ),
        "listing memories": lambda: store.memories(tag, page=1, limit=1, timeout=_REQUEST),
        "listing documents": lambda: store.list_documents(
            tag, page=1, limit=1, contents=True, timeout=_REQUEST
        ),
    }
    missing: list[str] = []
    for name, request in requests.items():
        if (refusal := await _refusal(request)) is not None:
            missing.append(f"{name} ({refusal})")
    sdk = _sdk_version()
    generation = "v5" if sdk.startswith("5.") else "v3/v4"
    found = f"{generation}, through supermemory {sdk}"
    if not missing:
        return Check("api", "ok", found)
    return Check(
        "api",
        "failed",
        f"{found}; refused: {', '.join(missing)}",
        "Update the service, or let the key list and search. Recall works without lists, but asks the service before"
        " each reply; erasing needs them.",
    )


async def _refusal(request: Callable[[], Awaitable[object]]) -> str | None:
    try:
        await request()
    except NotFound:  # the tag is unknown, or the route is: the round trip shows which
        return None
    except (ServiceError, NotImplementedError) as error:
        return _kind(error)
    return None


def _sdk_version() -> str:
    try:
        return version("supermemory")
    except PackageNotFoundError:
        return "(unknown version)"


# -- the round trip ---------------------------------------------------------------------------------------------------


async def _round_trip(store: MemoryStore, tag: str) -> AsyncGenerator[Check]:
    written = await _write(store, tag)
    yield written
    if written.state == "ok":
        yield await _read(store, tag)
        yield await _find(store, tag)
    yield await _erase(store, tag)


async def _write(store: MemoryStore, tag: str) -> Check:
    async def append(dreaming: Dreaming) -> None:
        now = datetime.now(timezone.utc)
        line = f"[{now.isoformat(timespec='milliseconds')[:23]}Z] Caller: {_SENTENCE}"
        await store.append(tag, f"lk-{tag}", line, dreaming=dreaming, at=now, timeout=_REQUEST)

    note = "instant processing"
    try:
        try:
            _, seconds = await _timed(append("instant"))
        except PaymentRequired:
            note = "no balance for instant processing: calls become memories on the service's schedule"
            _, seconds = await _timed(append("dynamic"))
    except AccessDenied as error:
        return Check(
            "write",
            "failed",
            _kind(error),
            "A scoped key can write its own container tag alone: use --no-round-trip with it.",
        )
    except RequestRejected as error:
        return Check("write", "failed", _kind(error), "Update the service: it refuses what calls send.")
    except (ServiceError, NotImplementedError) as error:
        return _failed("write", failure(error))
    return Check("write", "ok", f"{_ms(seconds)}; {note}")


async def _read(store: MemoryStore, tag: str) -> Check:
    """Writes with an unclear end are settled by reading the document."""
    until = _now() + _REQUEST
    what = "the document is not shown"
    while True:
        try:
            text, seconds = await _timed(store.read(tag, f"lk-{tag}", service_id=None, timeout=_REQUEST))
            if text is not None and _SENTENCE in text:
                return Check("read back", "ok", _ms(seconds))
        except (ServiceError, NotImplementedError) as error:
            what = _kind(error)
        if _now() >= until:
            return Check(
                "read back",
                "failed",
                what,
                "A write whose answer is lost could be stored twice. Let the key read documents.",
            )
        await asyncio.sleep(0.5)


async def _find(store: MemoryStore, tag: str) -> Check:
    began = _now()
    what = "not found"
    while True:
        try:
            hits = await store.search(tag, _QUESTION, limit=5, threshold=0.0, mode="hybrid", timeout=_REQUEST)
            if any("purple" in hit.text for hit in hits):
                return Check("search", "ok", f"found {_ms(_now() - began)} after it was written")
        except (ServiceError, NotImplementedError) as error:
            what = _kind(error)
        if _now() - began >= _FOUND_WITHIN:
            return Check(
                "search",
                "failed",
                f"{what} within {_FOUND_WITHIN:.0f} s",
                "What was just said will not be recalled soon. Look at the service's processing queue.",
            )
        await asyncio.sleep(0.5)


async def _erase(store: MemoryStore, tag: str) -> Check:
    result = await erase_caller(store, tag, timeout=_ERASED_WITHIN)
    if result.clean:
        return Check("erase", "ok", "nothing of the round trip is left")
    return Check(
        "erase",
        "failed",
        "; ".join(": ".join(problem(one)) for one in result.problems)
        or "something of the round trip is left",
        "Erasing callers would leave the same. A key of an owner or admin may delete container tags.",
    )


# -- small things -----------------------------------------------------------------------------------------------------


async def _timed(request: Awaitable[T]) -> tuple[T, float]:
    began = _now()
    return await request, _now() - began


def _now() -> float:
    return asyncio.get_running_loop().time()


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _kind(error: BaseException) -> str:
    return failure(error).found
