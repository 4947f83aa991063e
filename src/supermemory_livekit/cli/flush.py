"""`flush`: deliver what dead processes left in a spool. Needs nothing but the core install."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from supermemory_livekit.erasure.marks import ErasureMarks
from supermemory_livekit.erasure.write_gate import WriteGate
from supermemory_livekit.spool.recovery import Recovered, recover
from supermemory_livekit.store import MemoryStore

from .caller import WRONG_SETUP, check_spool_dir, open_store
from .text import counted

__all__ = ["deliver", "main", "run_flush"]


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    parser = argparse.ArgumentParser(
        prog="supermemory-livekit flush",
        description="Deliver what workers that were killed left in their spool. "
        "The key comes from SUPERMEMORY_API_KEY.",
        epilog="Prints counts alone. The exit code is 0 when nothing is left, 1 when something is, "
        "and 2 for wrong set-up.",
    )
    parser.add_argument(
        "--spool-dir", type=Path, required=True, metavar="DIR", help="Directory that the workers were given."
    )
    parser.add_argument(
        "--base-url",
        default=os.environ.get("SUPERMEMORY_BASE_URL"),
        metavar="URL",
        help="Where Supermemory answers. [env: SUPERMEMORY_BASE_URL]",
    )
    given = parser.parse_args(arguments)
    check_spool_dir(parser, given.spool_dir)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return run_flush(given.spool_dir, base_url=given.base_url)


def run_flush(directory: Path, *, base_url: str | None) -> int:
    """Deliver, and print counts alone. Returns 0 when nothing is left, 1 when something is, 2 for wrong set-up."""
    store = open_store(base_url)
    if store is None:
        return WRONG_SETUP
    result = asyncio.run(deliver(store, directory.expanduser()))
    print(f"Delivered:         {counted(result.delivered, 'turn')}")
    print(f"Not delivered:     {counted(result.left, 'turn')}")
    print(f"Refused for good:  {counted(result.refused, 'turn')}")
    print(f"Without a caller:  {counted(result.unscoped, 'turn')}")
    print(f"Damaged:           {counted(result.damaged, 'record')}")
    print(f"Not read:          {counted(result.foreign, 'file')} of another format")
    if result.left:
        print("To do:             run this again once `supermemory-livekit doctor` finds nothing wrong")
    return 1 if result.left or result.refused or result.unscoped or result.foreign else 0


async def deliver(store: MemoryStore, directory: Path) -> Recovered:
    """Deliver to this store, and close it."""
    try:
        # A caller may be erased while an outage makes this wait.
        return await recover(WriteGate(store, marks=ErasureMarks.of_machine(directory)), directory)
    finally:
        await store.aclose()
