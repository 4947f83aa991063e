"""`export`: everything that is known of one caller, as JSON Lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from supermemory_livekit.export import export_caller
from supermemory_livekit.store import MemoryStore

from .caller import add_service, add_tag, parser, with_store
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

    async def work(store: MemoryStore) -> int:
        lines = 0
        out = _opened(given.output) if given.output is not None else sys.stdout
        try:
            async for record in export_caller(store, given.tag, spool_dir=given.spool_dir):
                _write(out, record)
                lines += 1
        finally:
            if given.output is not None:
                out.close()
        if given.output is not None:
            print(f"Written: {counted(lines, 'record')}")
        return 0

    return with_store(given.base_url, work)


def _write(out: TextIO, record: dict[str, Any]) -> None:
    # ASCII alone: no terminal and no encoding of a pipe can spoil it.
    out.write(json.dumps(record) + "\n")


def _opened(path: Path) -> TextIO:
    return os.fdopen(os.open(path.expanduser(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w")
