"""Checks whether the memory works from here: key, reach, clock, API, and a round trip under a tag of its own.

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
from typing import Any, Literal, TypeVar

import httpx

from .erasure import erase_caller
from .errors import (
    AccessDenied,
    NotFound,
    PaymentRequired,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from .store import Dreaming, MemoryStore

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
    store: MemoryStore, client: Any, *, key: str, round_trip: bool = True
) -> AsyncGenerator[Check]:
    """The checks, one after another. `client` is the SDK's, for the clock; `key` says where the key is from."""
    tag = f"doctor-{uuid.uuid4().hex}"
    reach = await _reach(store, tag)
    denied = reach.state == "failed" and reach.name == "key"
    if not denied:
        yield Check("key", "ok", f"{key}; accepted") if reach.state == "ok" else Check("key", "skipped", key)
    yield reach
    if reach.state == "failed":
        for name in ("clock", "api", *(["round trip"] if round_trip else [])):
            yield Check(name, "skipped", "not looked at, since the service cannot be used")
        return
    yield await _clock(client)
    yield await _api(store, tag)
    if round_trip:
        async for check in _round_trip(store, tag):
            yield check


# -- reach, and the key ---------------------------------------------------------------------------------------------


async def _reach(store: MemoryStore, tag: str) -> Check:
    try:
        _, first = await _timed(store.profile(tag, timeout=_REQUEST))
        _, seconds = await _timed(store.profile(tag, timeout=_REQUEST))
    except AccessDenied as error:
        return Check(
            "key",
            "failed",
            f"the service refuses it ({error.status})",
            "Set SUPERMEMORY_API_KEY to a key of this service; a scoped key can use its own container tag alone.",
        )
    except PaymentRequired:
        return Check("reach", "failed", "no balance (402)", "Top up the organisation's balance.")
    except NotFound:
        return Check(
            "reach",
            "failed",
            "something answers, but it has no profile route (404)",
            "Check --base-url: it names another service, or one that speaks another generation of the API.",
        )
    except (ServiceTimeout, ServiceUnavailable) as error:
        return Check(
            "reach",
            "failed",
            str(error),
            "Check --base-url, that the service runs, and that a firewall or proxy lets this machine through.",
        )
    except ServiceError as error:
        return Check("reach", "failed", str(error), "Check --base-url and the version of the service.")
    found = f"answers in {_ms(seconds)}, {_ms(first)} with the connection"
    if seconds > _SLOW:
        return Check(
            "reach",
            "failed",
            found,
            "Replies would often do without memory: move closer to the service, or raise recall_timeout.",
        )
    return Check("reach", "ok", found)


# -- the clock --------------------------------------------------------------------------------------------------------


async def _clock(client: Any) -> Check:
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


async def _date(client: Any) -> float | None:
    """The service's time in seconds since 1970, from the header of whatever it answers."""
    get = getattr(client, "get", None)
    if not callable(get):
        return None
    try:
        asking: Any = get("/", cast_to=httpx.Response, options={"timeout": _REQUEST})
        response: Any = await asking
    except Exception as error:  # noqa: BLE001 - a refusal carries the header too
        response = getattr(error, "response", None)
    headers = getattr(response, "headers", None)
    value = headers.get("date") if headers is not None else None
    if not isinstance(value, str):
        return None
    parsed = email.utils.parsedate_tz(value)
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
        "Update the service. Recall works without lists, but asks the service before each reply; erasing needs them.",
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
    except PaymentRequired as error:
        return Check("write", "failed", _kind(error), "Top up the organisation's balance.")
    except RequestRejected as error:
        return Check("write", "failed", _kind(error), "Update the service: it refuses what calls send.")
    except ServiceError as error:
        return Check("write", "failed", _kind(error), "Look at the service's log.")
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
        except ServiceError as error:
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
        "; ".join(result.problems) or "something of the round trip is left",
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
    return str(error) if isinstance(error, (ServiceError, NotImplementedError)) else type(error).__name__
