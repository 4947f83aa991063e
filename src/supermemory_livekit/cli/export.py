"""`export`: everything that is known of one caller, as JSON Lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from supermemory_livekit.admin.export import export_caller
from supermemory_livekit.store import MemoryStore

from .caller import FAILED, add_service, add_tag, check_spool_dir, parser, with_store
from .text import counted

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    known = parser(
        "export",
        "Write everything that is known of one caller as JSON Lines: profile, memories, the text of calls and of "
        "remembered facts, and what waits in the spool.",
        "A caller nobody knows gives no line. The exit code is 0 when all was read, 1 when it was not, and 2 for "
        "wrong set-up.",
    )
    add_tag(known)
    add_service(known, spool=True)
    known.add_argument(
        "--output", type=Path, metavar="FILE", help="Write to this new file, readable by its owner alone."
    )
    given = known.parse_args(arguments)

    check_spool_dir(known, given.spool_dir)

    def written_to(out: TextIO) -> Callable[[MemoryStore], Awaitable[int]]:
        async def work(store: MemoryStore) -> int:
            lines = 0
            async for record in export_caller(store, given.tag, spool_dir=given.spool_dir):
                _write(out, record)
                lines += 1
            # Not among the records, where those are on standard output.
            report = sys.stderr if given.output is None else sys.stdout
            print(f"Written: {counted(lines, 'record')} of {given.tag}", file=report)
            return 0

        return work

    path: Path | None = given.output
    if path is None:
        return with_store(given.base_url, written_to(sys.stdout))
    try:
        # Before anything is asked of the service: a name that is taken is told at once.
        out = _opened(path)
    except OSError as error:
        print(f"Failed: {_not_opened(path, error)}", file=sys.stderr)
        return FAILED
    code = FAILED
    try:
        with out:
            code = with_store(given.base_url, written_to(out))
    finally:
        if code:
            # Half an export would pass for a whole one, and its name would be taken the next time.
            path.expanduser().unlink()
    return code


def _write(out: TextIO, record: dict[str, Any]) -> None:
    # ASCII alone: no terminal and no encoding of a pipe can spoil it.
    out.write(json.dumps(record) + "\n")


def _opened(path: Path) -> TextIO:
    return os.fdopen(os.open(path.expanduser(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w")


def _not_opened(path: Path, error: OSError) -> str:
    if isinstance(error, FileExistsError):
        return f"{path} is there already, and is not overwritten. Give --output another name, or move that file away."
    return f"{path} cannot be written ({error.strerror or type(error).__name__}). Give --output another name."
