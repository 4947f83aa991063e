"""`erase`: delete everything of one caller, and prove it by reading back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from supermemory_livekit.erasure import ERASE_TIMEOUT, Erasure, erase_everywhere
from supermemory_livekit.store import MemoryStore

from .caller import FAILED, add_service, add_tag, parser, with_store
from .text import counted

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    known = parser(
        "erase",
        "Delete the calls, the remembered facts and the memories of one caller, also what waits in the spool, and "
        "read back until nothing is found.",
        "Calls on the line, on this machine or with this spool, store nothing more of the caller. The exit code is 0 "
        "when nothing is left, 1 when something is or cannot be read back, and 2 for wrong set-up.",
    )
    add_tag(known)
    add_service(known, spool=True)
    known.add_argument(
        "--yes", action="store_true", help="Do not ask, also when somebody is there to answer."
    )
    known.add_argument("--json", action="store_true", help="Print the result as one JSON object.")
    known.add_argument(
        "--timeout",
        type=float,
        default=ERASE_TIMEOUT,
        metavar="SECONDS",
        help="How long to delete what comes up again. [default: %(default)g]",
    )
    given = known.parse_args(arguments)
    if sys.stdin.isatty() and not given.yes and not _confirmed():
        print("Nothing was deleted.", file=sys.stderr)
        return FAILED
    spool_dir: Path | None = given.spool_dir
    if spool_dir is not None and not spool_dir.expanduser().is_dir():
        known.error(f"{spool_dir} is no directory")

    async def work(store: MemoryStore) -> int:
        result = await erase_everywhere(store, given.tag, spool_dir=spool_dir, timeout=given.timeout)
        if given.json:
            print(json.dumps({**asdict(result), "clean": result.clean}))
        else:
            _report(result)
        return 0 if result.clean else FAILED

    return with_store(given.base_url, work)


def _confirmed() -> bool:
    answer = input("Delete everything that is known of this caller? It cannot be undone. [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _report(result: Erasure) -> None:
    print(f"Deleted:   {counted(result.documents, 'document')}, {_memories(result.memories)}")
    print(f"Not sent:  {counted(result.turns, 'turn')} that waited in the spool")
    left = [
        counted(result.left_documents, "document") if result.left_documents else "",
        _memories(result.left_memories) if result.left_memories else "",
        f"{result.left_marks} forgotten ones that the service keeps" if result.left_marks else "",
        *(f"something in {place}" for place in result.shown),
    ]
    print(f"Left:      {', '.join(filter(None, left)) or 'nothing'}")
    if result.unread:
        print(f"Not read:  {', '.join(result.unread)}")
    for problem in result.problems:
        print(f"Problem:   {problem}")
    if result.clean:
        print("Read back: nothing is known of this caller")
    elif any("deleting the container tag" in problem for problem in result.problems):
        print("To do:     run this again with a key of an owner or admin, who may delete a container tag")
    else:
        print("To do:     run this again in a few minutes; `supermemory-livekit doctor` looks for the cause")


def _memories(number: int) -> str:
    return f"{number} {'memory' if number == 1 else 'memories'}"
