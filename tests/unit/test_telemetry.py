"""What a developer sees of the memory holds no words of a caller."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from supermemory_livekit import ServiceUnavailable
from supermemory_livekit.observability.spans import memory_span


@pytest.mark.parametrize(
    "error", [RuntimeError("secret words"), ServiceUnavailable("search answered 503", status=503)]
)
def test_a_failing_span_names_the_kind_of_the_error_and_no_text(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case P2: an exception of another package may quote the request."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("livekit.agents.telemetry.tracer", provider.get_tracer("test"))
    with pytest.raises(type(error)), memory_span("search_memory", "recall"):
        raise error
    (span,) = exporter.get_finished_spans()
    assert "secret words" not in span.to_json()
    assert span.events == ()
    assert not span.status.is_ok
    assert span.attributes is not None
    assert span.attributes["error.type"] == type(error).__name__
