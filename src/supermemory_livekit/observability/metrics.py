"""The metrics of the memory, through the OpenTelemetry API: without a meter provider they cost next to nothing.

Labels are kinds: of outcomes, errors, requests and tools. No word of a caller, no container tag, no id and no key, so
that they stay few and tell nobody anything about a caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from opentelemetry.metrics import Counter, Histogram, UpDownCounter, get_meter

from supermemory_livekit._version import __version__

__all__ = ["Instruments", "instruments"]

_RECALL_BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
_REQUEST_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Upper bounds of buckets, in seconds."""


@dataclass(frozen=True)
class Instruments:
    """What is measured. The names, units and labels are documented in docs/how-to/observability.md."""

    recall_duration: Histogram
    breaker_open: UpDownCounter
    outages: Counter
    turns_unwritten: UpDownCounter
    turns: Counter
    write_duration: Histogram
    tool_duration: Histogram


@cache
def instruments() -> Instruments:
    """The instruments of this process. They follow a meter provider that is set later, too.

    Shared by all calls: instruments have no state of ours, and the API keeps every one that is made.
    """
    meter = get_meter("supermemory_livekit", __version__)
    return Instruments(
        recall_duration=meter.create_histogram(
            "supermemory.recall.duration",
            unit="s",
            description="Time that a reply waited for its recall",
            explicit_bucket_boundaries_advisory=_RECALL_BOUNDS,
        ),
        breaker_open=meter.create_up_down_counter(
            "supermemory.breaker.open",
            unit="{call}",
            description="Calls whose replies do not wait for this kind of request",
        ),
        outages=meter.create_counter(
            "supermemory.outages",
            unit="{outage}",
            description="Outages of a part of the memory that have begun",
        ),
        turns_unwritten=meter.create_up_down_counter(
            "supermemory.capture.unwritten",
            unit="{turn}",
            description="Turns of running calls that the service has not acknowledged",
        ),
        turns=meter.create_counter(
            "supermemory.capture.turns",
            unit="{turn}",
            description="Turns by what became of them",
        ),
        write_duration=meter.create_histogram(
            "supermemory.capture.write.duration",
            unit="s",
            description="Time of a request that stores turns",
            explicit_bucket_boundaries_advisory=_REQUEST_BOUNDS,
        ),
        tool_duration=meter.create_histogram(
            "supermemory.tool.duration",
            unit="s",
            description="Time of a memory tool",
            explicit_bucket_boundaries_advisory=_REQUEST_BOUNDS,
        ),
    )
