"""A memory that notes what each recall brought and how long the reply waited for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from livekit.agents import llm

from supermemory_livekit.memory import SupermemoryLiveKit
from supermemory_livekit.recall.render import is_ours

__all__ = ["ObservedMemory", "Recalled", "memory_lines"]


@dataclass(frozen=True)
class Recalled:
    """One recall: the lines the model was shown, and the seconds the reply waited for them."""

    lines: tuple[str, ...]
    seconds: float


class ObservedMemory(SupermemoryLiveKit):
    """As its base class; `recalls` holds what was recalled so far, tool follow-ups included."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.recalls: list[Recalled] = []

    async def enrich(self, chat_ctx: llm.ChatContext) -> None:
        started = time.perf_counter()
        await super().enrich(chat_ctx)
        self.recalls.append(Recalled(tuple(memory_lines(chat_ctx)), time.perf_counter() - started))


def memory_lines(chat_ctx: llm.ChatContext) -> list[str]:
    """The facts in the memory blocks of a context, one each."""
    blocks = [
        item.text_content or ""
        for item in chat_ctx.items
        if isinstance(item, llm.ChatMessage) and is_ours(item)
    ]
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("- ")]
