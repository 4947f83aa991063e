"""Requests come first: background work gives way while one is being answered.

Threads of one process share the interpreter. A thread that computes gives it up only every few milliseconds, and one
request changes threads several times, so a search beside work that never pauses takes five times as long as alone.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["Traffic"]

_LONGEST_WAIT = 0.025
"""Seconds for which a step of background work gives way, so that it gets on under any number of requests."""


class Traffic:
    """The requests under way in one process. Thread-safe."""

    def __init__(self, longest_wait: float = _LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait
        self._changed = threading.Condition()
        self._requests = 0

    @contextmanager
    def request(self) -> Generator[None, None, None]:
        """A request is being answered within."""
        with self._changed:
            self._requests += 1
        try:
            yield
        finally:
            with self._changed:
                self._requests -= 1
                if not self._requests:
                    self._changed.notify_all()

    def give_way(self) -> None:
        """Wait while requests are being answered, though not for long. To be called every few milliseconds of work.

        Blocks.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._requests, self._longest_wait)
