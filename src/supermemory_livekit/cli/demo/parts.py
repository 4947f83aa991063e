"""The parts of the scripted demo. Each runs in a process of its own over the same database."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from supermemory_livekit.cli.text import counted
from supermemory_livekit.retrieval import load_embedder

from .call import calling, stored_text
from .observe import ObservedMemory
from .output import Output
from .report import Report
from .script import Script
from .standin import StandInLLM

__all__ = ["first_call", "second_call"]


async def first_call(script: Script, path: Path, output: Output, *, recall: bool, run: str) -> None:
    """The caller rings for the first time."""
    await _prewarm(output)
    address = f"local:{path}"
    website = ObservedMemory(base_url=address, container_tag=script.tag)
    output.note(f'before the call the website stores under the same container tag: "{script.known_before}"')
    output.note(f"  -> {await website.remember(script.known_before)}")
    await website.aclose()

    output.heading(f"First call (process {os.getpid()})")
    memory = ObservedMemory(base_url=address, container_tag=script.tag, session_id=f"demo-{run}-1")
    async with calling(memory, StandInLLM(), output, recall=recall) as call:
        await call.greet()
        for words in script.first_call():
            await call.say(words)
    await _show_stored(address, memory, output)


async def second_call(script: Script, path: Path, output: Output, *, recall: bool, run: str) -> Report:
    """The caller rings again, then somebody else does."""
    address = f"local:{path}"
    report = Report()
    output.heading(f"Second call (process {os.getpid()}: nothing of the first one is in its memory)")
    await _prewarm(output)
    memory = ObservedMemory(base_url=address, container_tag=script.tag, session_id=f"demo-{run}-2")
    async with calling(memory, StandInLLM(), output, recall=recall) as call:
        report.greeting = await call.greet()
        for question in script.second_call():
            turn = await call.say(question.text)
            report.answers.append(turn.answer)
            report.recalled.append(list(turn.recalled))
    await _show_stored(address, memory, output)

    output.heading("Somebody else rings (another container tag, the same database)")
    memory = ObservedMemory(base_url=address, container_tag=script.other_tag, session_id=f"demo-{run}-3")
    async with calling(memory, StandInLLM(), output, recall=recall) as call:
        report.other.append(await call.greet())
        for words in script.other_call():
            turn = await call.say(words)
            report.other += [turn.answer, *turn.recalled]
    return report


async def _prewarm(output: Output) -> None:
    """What a worker does in its prewarm function, before a call comes in."""
    started = time.perf_counter()
    model = await asyncio.to_thread(load_embedder)
    seconds = time.perf_counter() - started
    if model is None:
        output.note("no embedding model installed: searching by words alone")
    else:
        output.note(f"embedding model loaded in {seconds:.1f} s, once per process, before the call")


async def _show_stored(address: str, memory: ObservedMemory, output: Output) -> None:
    text = await stored_text(address, memory)
    turns = text.splitlines() if text else []
    output.note(f"stored as one document: {counted(len(turns), 'turn')}")
    output.lines(turns)
