"""What OpenTelemetry gets to see: the spans and the metrics of a test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

from livekit.agents.telemetry import tracer
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["Measured", "Traced", "traced"]


class Traced:
    """Spans of LiveKit's tracer that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def every(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def ours(self, part: str = "") -> list[ReadableSpan]:
        """Spans of this package, of one part of it if named."""
        found = [(span, (span.attributes or {}).get("supermemory.part")) for span in self.every]
        return [span for span, of in found if of is not None and part in ("", of)]

    def parent(self, span: ReadableSpan) -> ReadableSpan:
        assert span.parent is not None, f"{span.name} has no parent"
        (parent,) = [one for one in self.every if one.context.span_id == span.parent.span_id]
        return parent


@contextmanager
def traced() -> Generator[Traced]:
    """Record what LiveKit's tracer and those who use it do meanwhile."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer.set_provider(provider)
    try:
        yield Traced(exporter)
    finally:
        tracer.set_provider(trace.get_tracer_provider())


@cache
def _reader() -> InMemoryMetricReader:
    """The one reader of the process: a meter provider can be set only once."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


class Measured:
    """By how much metrics have changed since this object was made."""

    def __init__(self) -> None:
        self._before = self._points()

    def change(self, name: str, **labels: str) -> float:
        """Of a counter, or the count of a histogram; 0 for what nobody has measured."""
        key = (name, tuple(sorted(labels.items())))
        return self._points().get(key, 0) - self._before.get(key, 0)

    def changes(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Everything of this package that has changed, by name and labels."""
        now = self._points()
        return {
            key: now[key] - self._before.get(key, 0) for key in now if now[key] != self._before.get(key, 0)
        }

    @staticmethod
    def text() -> str:
        """Everything that was measured, by anybody, as JSON."""
        data = _reader().get_metrics_data()
        return data.to_json() if data is not None else ""

    @staticmethod
    def _points() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        data = _reader().get_metrics_data()
        found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                if scope.scope.name != "supermemory_livekit":
                    continue
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        labels: dict[str, Any] = dict(point.attributes or {})
                        count = point.count if isinstance(point, HistogramDataPoint) else point.value
                        found[metric.name, tuple(sorted(labels.items()))] = count
        return found
