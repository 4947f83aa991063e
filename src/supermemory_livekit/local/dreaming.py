"""From the text of a document to memories: what an extractor is shown, and what is done with what it finds."""

from __future__ import annotations

from collections.abc import Sequence

from .container import Container
from .extraction import Changes, Extractor, Fact, Known, parse_transcript
from .records import Document, NewMemory
from .texts import from_ms, now_ms, to_ms
from .writer import Writer

__all__ = ["apply", "changes_of", "known_of"]

_CONTEXT_LINES = 4
"""Turns before the new ones that an extractor is shown, so that it knows what an answer answers."""
_KNOWN = 250
"""Memories of each kind, the newest, that an extractor compares with: its work grows with their number."""
_LONGEST_FACT = 10_000
"""Characters of a text that, being no conversation, becomes one memory: the API's limit for a memory."""


def known_of(container: Container) -> list[Known]:
    """The memories that an extractor is shown."""
    held = [
        memory for static in (True, False) for memory in container.live_memories(static=static, limit=_KNOWN)
    ]
    return [Known(memory.id, memory.text, memory.static, from_ms(memory.at)) for memory in held]


async def changes_of(document: Document, known: Sequence[Known], extractor: Extractor) -> Changes:
    """What becomes of the part of a document that was added since the last time, beside the memories held already."""
    added = document.content[document.dreamed :]
    if document.task_type == "superrag" or not added.strip():
        return Changes()
    at = from_ms(document.dated_at if document.dated_at is not None else document.updated_at)
    lines = parse_transcript(added)
    if lines:
        before = parse_transcript(_tail(document.content[: document.dreamed]))
        return await extractor.extract(lines, known, at=at, before=before)
    if len(added) <= _LONGEST_FACT:
        return Changes(add=(Fact(added.strip(), True, at),))
    return Changes()


def apply(writer: Writer, document: Document, changes: Changes) -> None:
    """Store and forget what an extractor found in the document."""
    now = now_ms()
    for memory in writer.memories(changes.forget).values():
        writer.forget(memory, "the caller asked for it")
    for fact in changes.add:
        expires = to_ms(fact.expires) if fact.expires is not None else None
        if fact.text.strip() and (expires is None or expires > now):
            new = NewMemory(
                text=fact.text.strip(),
                static=fact.static,
                at=min(to_ms(fact.at), now),
                forget_after=expires,
                metadata=document.metadata,
                replaces=fact.replaces,
            )
            writer.add_memory(new, document)


def _tail(content: str) -> str:
    return "\n".join(content.rstrip("\n").rsplit("\n", _CONTEXT_LINES)[-_CONTEXT_LINES:])
