"""Whether a reply should wait for the memory service: the breaker of recall."""

from __future__ import annotations

from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    PaymentRequired,
    ServiceError,
    ServiceTimeout,
)
from supermemory_livekit.observability.observer import BreakerOf, Observer

__all__ = ["Patience"]

FAILURES_UNTIL_STOP = 3
"""Errors in a row after which a turn no longer waits. A request that outlives its budget stops the waiting at once."""


class Patience:
    """Whether a reply should wait for one kind of request.

    A service that owes an answer beyond the budget, or that refuses, is asked in the background until it answers:
    only then does a reply wait for it again.
    """

    def __init__(self, request: BreakerOf, what: str, *, consequence: str, observer: Observer) -> None:
        self._request: BreakerOf = request
        self._observer = observer
        self._outage = observer.outage_log(request, what)
        self._consequence = consequence
        self._failures = 0
        self._revived = False
        """Another kind of request has made replies wait for this one, which has not answered since."""
        self._stopped_by: ServiceError | None = None

    @property
    def stopped_by(self) -> ServiceError | None:
        """Why no reply waits; None while they do."""
        return self._stopped_by

    @property
    def waits(self) -> bool:
        return self._stopped_by is None

    def answered(self) -> None:
        self._failures = 0
        self._revived = False
        self._stop(None)
        self._outage.worked()

    def failed(self, error: ServiceError) -> None:
        self._failures += 1
        refused = isinstance(error, (AccessDenied, APIMismatch, PaymentRequired, ServiceTimeout))
        if refused or self._failures >= FAILURES_UNTIL_STOP:
            self._stop(error)
        self._outage.failed(error, self._consequence)

    def overdue(self, budget: float) -> None:
        self.failed(ServiceTimeout(f"no answer within recall_timeout ({budget:g} s)"))

    def doubt(self) -> None:
        """Wait no more until the service has answered something. Nothing has failed yet, so nothing is logged."""
        self._stop(self._stopped_by or ServiceTimeout("the service is slow"))

    def service_is_back(self) -> None:
        """Another kind of request was answered: wait again, unless this one was refused as such.

        Once, until this kind answers: where it alone is down, every turn would wait for it again.
        """
        lasting = isinstance(self._stopped_by, (AccessDenied, APIMismatch, PaymentRequired))
        if self.waits or self._revived or lasting:
            return
        self._revived = True
        self._failures = 0
        self._stop(None)

    def _stop(self, reason: ServiceError | None) -> None:
        self._stopped_by = reason
        self._observer.breaker(self._request, is_open=reason is not None)
