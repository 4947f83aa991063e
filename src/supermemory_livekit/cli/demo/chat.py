"""`demo --chat`: a person is the caller, one line a turn, from a terminal or a pipe."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from livekit.agents import APIError

from supermemory_livekit.admin.plain_words import setup
from supermemory_livekit.cli.text import counted
from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.sdk.client import SetupError

from .call import Call, calling, stored_text
from .observe import ObservedMemory
from .openai_llm import model_from_env
from .output import Output
from .standin import StandInLLM

__all__ = ["run_chat"]

_LAST_WORDS = frozenset({"bye", "goodbye", "exit", "quit"})


async def run_chat(*, caller: str, path: Path | None, verbose: bool) -> int:
    """One call with whoever types. Ends at "bye" or at the end of input. Returns the exit code.

    The call is kept in the database `path`, or in the default one of the embedded service, under the container tag
    that `caller` makes.
    """
    output = Output(verbose=verbose)
    address = f"local:{path}" if path is not None else "local"
    try:
        memory = ObservedMemory(base_url=address, container_tag=caller)
    except SetupError as error:
        told = setup(error)
        output.line(f"Cannot start: {told.found}. {told.advice}", "red")
        return 2
    except ConfigurationError:
        output.line("Cannot start: --caller takes a name or a number.", "red")
        return 2
    configured = model_from_env()
    if configured is not None:
        output.line(f"Language model: {configured.model} at {configured.provider}.")
    else:
        output.line(
            "Language model: a stand-in that answers only from the context it is given. For a real one set "
            "OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL."
        )
    output.line(f'You are the caller "{caller}". "bye", or the end of input, ends the call.')
    output.line()
    try:
        async with calling(memory, configured or StandInLLM(), output) as call:
            code = await _converse(call, output)
    finally:
        if configured is not None:
            await configured.aclose()
    text = await stored_text(address, memory)
    output.line()
    output.line(f"Stored: {counted(len(text.splitlines()) if text else 0, 'turn')} of this call.")
    return code


async def _converse(call: Call, output: Output) -> int:
    try:
        await call.greet()
        async for words in _typed():
            await call.say(words, echo=not sys.stdin.isatty())
            if words.casefold().strip(" .!") in _LAST_WORDS:
                break
    except APIError as error:
        output.line(f"The call ends, the language model fails: {error.message}.", "red")
        output.line("Check OPENAI_MODEL, OPENAI_API_KEY and OPENAI_BASE_URL, or unset OPENAI_MODEL.", "red")
        return 1
    return 0


async def _typed() -> AsyncIterator[str]:
    """Lines of standard input as they come, without blank ones."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    # A daemon: a thread that waits for a line cannot be stopped, and must not keep the process from ending.
    threading.Thread(target=read, daemon=True, name="typed-lines").start()
    while (line := await lines.get()) is not None:
        if line.strip():
            yield line.strip()
