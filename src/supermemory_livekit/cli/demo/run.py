"""The scripted demo from start to verdict: two processes over one database, then a list of what held."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from .database import why_unusable
from .output import Output
from .report import Report
from .script import Script

__all__ = ["run_demo", "verdict"]

_PART_SECONDS = 120.0
"""How long one process may take. It needs a few seconds; a demo that hangs is a demo that failed."""


def run_demo(
    *, seed: int | None = None, path: Path | None = None, recall: bool = True, verbose: bool = False
) -> int:
    """Play the demo and print it. Returns the exit code: 0 when the caller was recognised on the second call.

    The data lie in a temporary directory, or in the database `path`, which is kept.
    """
    output = Output(verbose=verbose)
    recognised = False
    code = 1
    try:
        if path is not None and (why := why_unusable(path)) is not None:
            output.line(f"Cannot start: {why}", "red")
        else:
            recognised = _play(output, seed=seed, path=path, recall=recall, verbose=verbose)
            code = 0 if recognised else 1
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 - the last line says how it ended, whatever went wrong
        output.line(f"The demo stopped: {type(error).__name__}: {error}", "red")
    output.line()
    output.line(f"demo: caller recognised on the second call: {'yes' if recognised else 'no'}", "bold")
    return code


def _play(output: Output, *, seed: int | None, path: Path | None, recall: bool, verbose: bool) -> bool:
    script = Script.draw(random.randrange(1_000_000) if seed is None else seed)  # noqa: S311 - no secret
    output.line(
        f"A caller rings twice. Seed {script.seed}: `demo --seed {script.seed}` plays the same caller again."
    )
    output.line(
        "The language model is a stand-in that answers only from the context it is given. No key, no network."
    )
    if not recall:
        output.line("Check: recall is switched off, so the agent must NOT recognise the caller.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="supermemory-demo-")))
        database = path if path is not None else folder / "memory.db"
        report = folder / "report.json"
        run = f"{int(time.time())}-{os.getpid()}"
        for part in ("first", "second"):
            command = [sys.executable, "-m", "supermemory_livekit.cli", "demo-part", part]
            command += [
                "--seed",
                str(script.seed),
                "--path",
                str(database),
                "--report",
                str(report),
                "--run",
                run,
            ]
            command += [] if recall else ["--without-recall"]
            command += ["--verbose"] if verbose else []
            # Our own interpreter with our own words; nothing of it comes from outside.
            ended = subprocess.run(command, timeout=_PART_SECONDS, env=_environment(), check=False)  # noqa: S603
            if ended.returncode:
                output.line(f"The {part} part of the demo ended with code {ended.returncode}.", "red")
                return False
        if path is not None:
            output.note(f"the database stays at {path}")
        return _show_verdict(verdict(script, Report.read(report)), output)


def _environment() -> dict[str, str]:
    """Without settings that would send the demo's words anywhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "SUPERMEMORY_", "LIVEKIT_"))
    }


def verdict(script: Script, report: Report) -> Iterator[tuple[bool, str]]:
    """What had to hold, and whether it did."""
    yield script.name in report.greeting, f"greeted by name: {script.name}"
    for question, answer, recalled in zip(script.second_call(), report.answers, report.recalled, strict=True):
        shown = [answer, *recalled]
        held = question.expected is None or question.expected in answer
        held = held and not any(word in answer for word in question.outdated)
        held = held and not any(word in line for word in question.refused for line in shown)
        wanted = f"{question.expected}, " if question.expected else ""
        yield held, f'"{question.text}" {wanted}{question.about}'
    leaked = any(secret in line for secret in script.secrets() for line in report.other)
    yield not leaked, "the other caller was given nothing of it"


def _show_verdict(results: Iterator[tuple[bool, str]], output: Output) -> bool:
    output.heading("What had to hold")
    everything = True
    for held, what in results:
        everything = everything and held
        output.line(f"  {'yes' if held else 'NO ':<4} {what}", "" if held else "red")
    return everything
