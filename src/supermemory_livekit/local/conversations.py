"""Conversations as clients send them: a list of messages, mostly the whole of it again each time it has grown.

A conversation is a document with the conversation's id as its custom id and one line per message. Stored are the
messages that are new: those after the longest run from the beginning that the document holds already, in order. So it
does not matter whether a client sends the whole conversation again, its last part, or only what is new.
"""

from __future__ import annotations

from collections.abc import Sequence

from .documents import Documents, Stored
from .faults import Refused, TooLarge
from .fields import MAX_CONTENT
from .schemas import AddDocument, Conversation, Message

__all__ = ["store"]

_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def store(documents: Documents, ask: Conversation) -> Stored:
    """Store what is new.

    Raises `Refused` when no message holds text, `TooLarge` when there is more of it than fits into one request.
    """
    lines = [_line(message) for message in ask.messages if message.text]
    if not lines:
        raise Refused("Invalid request parameters", "messages: must hold some text")
    content = "\n".join(lines)
    if len(content.encode()) > MAX_CONTENT:
        raise TooLarge("Conversation too large", f"messages: at most {MAX_CONTENT} bytes in all")
    sent = {
        "content": content,
        "containerTag": ask.tag,
        "customId": ask.conversation_id,
        "metadata": ask.metadata,
        "entityContext": ask.entity_context,
    }
    return documents.add(AddDocument.model_validate(sent), addition=_addition)


def _line(message: Message) -> str:
    return f"{_NAMES[message.role]}: {message.text}"


def _addition(stored: str, content: str) -> str:
    new = _new(stored.splitlines(), content.splitlines())
    return "".join("\n" + line for line in new)


def _new(stored: Sequence[str], sent: Sequence[str]) -> Sequence[str]:
    known = iter(stored)
    for index, line in enumerate(sent):
        if line not in known:  # goes on behind the line found before
            return sent[index:]
    return ()
