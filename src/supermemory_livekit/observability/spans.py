"""Spans of LiveKit's tracer after the GenAI conventions for memory: docs/decisions/0018-telemetry.md.

They nest under what LiveKit does at the time, `llm_node` for a recall. A span is current inside one coroutine and never
across a `yield`. It carries no text of the caller, unless the operator asks for it; then in the two attributes that the
conventions have for it, and that LiveKit strips where redaction is on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Literal

from opentelemetry.trace import Span, SpanKind, StatusCode

from supermemory_livekit.store import Hit
from supermemory_livekit.telemetry import describe

__all__ = ["CAPTURE_CONTENT", "Operation", "memory_span", "record_content"]

Operation = Literal["search_memory", "create_memory", "delete_memory"]
"""What is done, by the GenAI conventions for memory."""

CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable of the GenAI instrumentations: "true" puts content into spans."""


@contextmanager
def memory_span(
    operation: Operation, part: str, kind: SpanKind = SpanKind.CLIENT
) -> Generator[Span, None, None]:
    """A span around one operation on the memory, done by this part of the package.

    A failure sets its status to the kind of the error: a foreign exception's own text may quote the request.
    """
    # Imported here: LiveKit takes seconds to import, and the commands, which make no spans, do without it.
    from livekit.agents.telemetry import tracer

    with tracer.start_as_current_span(
        f"{operation} supermemory",
        kind=kind,
        attributes={
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "supermemory",
            "supermemory.part": part,
        },
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except Exception as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(StatusCode.ERROR, describe(error))
            raise


def record_content(span: Span, query: str, hits: Sequence[Hit]) -> None:
    """Put what was looked for and what was found into the span, if the operator wants content in spans."""
    if os.environ.get(CAPTURE_CONTENT, "").strip().lower() != "true" or not span.is_recording():
        return
    records = [{"id": hit.memory_id, "content": hit.text, "score": hit.similarity} for hit in hits]
    span.set_attribute("gen_ai.memory.query.text", query)
    span.set_attribute("gen_ai.memory.records", json.dumps(records, ensure_ascii=False))
