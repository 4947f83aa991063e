"""What a developer can see of the memory: log lines and counters, none of them holding a caller's words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from .errors import AccessDenied, APIMismatch, PaymentRequired, ServiceError

__all__ = ["OutageLog", "Stats", "describe", "logger"]

logger = logging.getLogger("supermemory_livekit")


@dataclass
class Stats:
    """Counters of one call, for programs that watch it. They only grow, except `turns_unwritten`."""

    recalls: int = 0
    """Recalls started, one per user message."""
    recalls_late: int = 0
    """Recalls that were not complete within `recall_timeout`."""
    recalls_failed: int = 0
    """Recalls to which the service answered with an error."""
    recalls_skipped: int = 0
    """Recalls not waited for because the service owes earlier answers."""
    turns_captured: int = 0
    """Turns taken from the conversation."""
    turns_written: int = 0
    """Turns the service has acknowledged."""
    turns_unwritten: int = 0
    """Turns captured and not acknowledged yet."""
    turns_dropped: int = 0
    """Turns given up: the buffer overflowed, the call ended without a scope, the service refuses them for good, they
    were discarded, or the caller had something forgotten with them."""
    turns_withheld: int = 0
    """Turns that were not taken at all: without consent, off the record, of a caller who is nobody, dropped by
    `redact`, or said while something was being forgotten. No other counter has them."""
    redactions_failed: int = 0
    """Texts on which `redact` failed or took too long. They go nowhere."""
    turns_unspooled: int = 0
    """Turns that the spool did not take, for want of room or of a working disk: they are in memory alone."""
    writes: int = 0
    """Write requests acknowledged."""
    writes_failed: int = 0
    """Write requests that ended in an error, a timeout or a cancellation."""


class OutageLog:
    """Says once that something fails, and once that it works again, however often either happens.

    Args:
        what: Begins the log message.
        began: Called with the error when an outage begins.
        ended: Called when it ends.
    """

    def __init__(
        self,
        what: str,
        *,
        began: Callable[[BaseException], None] = lambda error: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._what = what
        self._began = began
        self._ended = ended
        self._down = False

    def failed(self, error: BaseException, consequence: str) -> None:
        """Log the first failure of an outage: ERROR when a person must act, WARNING otherwise."""
        if self._down:
            logger.debug("%s still fails: %s", self._what, describe(error))
            return
        self._down = True
        level = logging.ERROR if isinstance(error, (AccessDenied, PaymentRequired)) else logging.WARNING
        logger.log(level, "%s fails: %s; %s%s", self._what, describe(error), consequence, _advice(error))
        self._began(error)

    def worked(self) -> None:
        if self._down:
            self._down = False
            logger.info("%s works again", self._what)
            self._ended()


def describe(error: BaseException) -> str:
    """The kind of an error, without its text: foreign exceptions may quote the request."""
    if isinstance(error, APIMismatch):  # what to do about it was said once, for all that fails by it
        return "the server does not speak the API of the installed SDK"
    return str(error) if isinstance(error, ServiceError) else type(error).__name__


def _advice(error: BaseException) -> str:
    if isinstance(error, AccessDenied):
        return " (check SUPERMEMORY_API_KEY, base_url, and whether the key may use this container tag)"
    if isinstance(error, PaymentRequired):
        return " (the organisation has no balance left for this operation)"
    return ""
