"""Keeps requests out of httpx's log whose address names a caller.

httpx logs the address of every request at INFO. All other requests carry the container tag in their body; deleting
a tag has no such form.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["unlogged"]

_unlogged: ContextVar[bool] = ContextVar("supermemory_livekit_unlogged", default=False)


def _passes(_: logging.LogRecord) -> bool:
    return not _unlogged.get()


@contextmanager
def unlogged() -> Generator[None]:
    """What this task asks for inside is not logged by httpx; requests of other tasks are, as ever."""
    logger = logging.getLogger("httpx")
    logger.addFilter(_passes)  # the same function again is no second filter
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)
