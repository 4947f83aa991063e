"""Container tags themselves: which there are, what is noted about one, and deleting all that is under it."""

from __future__ import annotations

from .faults import Missing
from .records import TagInfo
from .storage import Storage

__all__ = ["delete_tag", "find_tag", "set_entity_context", "tags_page"]


def find_tag(storage: Storage, tag: str) -> TagInfo:
    """Raises `Missing` for a tag that was never written to."""
    found = storage.tags(tag)
    if not found:
        raise Missing("Container tag not found")
    return found[0]


def tags_page(storage: Storage, text: str, limit: int, offset: int) -> tuple[list[TagInfo], int]:
    """Some of the tags in which `text` occurs in whatever case, changed last first, and how many there are in all."""
    found = [tag for tag in storage.tags() if text.casefold() in tag.tag.casefold()]
    return found[offset : offset + limit], len(found)


def set_entity_context(storage: Storage, tag: str, text: str | None) -> TagInfo:
    """Note what helps to understand the texts under a tag.

    Raises `Missing` for a tag that was never written to.
    """
    find_tag(storage, tag)
    with storage.write(tag) as writer:
        writer.set_entity_context(text)
    return find_tag(storage, tag)


def delete_tag(storage: Storage, tag: str) -> tuple[int, int]:
    """Delete everything under a tag, and the tag. How many documents and memories that were.

    Raises `Missing` for a tag that was never written to.
    """
    find_tag(storage, tag)
    with storage.write(tag) as writer:
        return writer.delete_all()
