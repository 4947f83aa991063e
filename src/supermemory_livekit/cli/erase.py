"""`erase`: delete everything of one caller, and prove it by reading back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from supermemory_livekit.admin.plain_words import problem
from supermemory_livekit.erasure.erasure import ERASE_TIMEOUT, Erasure, erase_everywhere
from supermemory_livekit.store import MemoryStore

from .caller import FAILED, WRONG_SETUP, add_service, add_tag, check_spool_dir, parser, with_store
from .text import counted

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    known = parser(
        "erase",
        "Delete the calls, the remembered facts and the memories of one caller, also what waits in the spool, and "
        "read back until nothing is found.",
        "It asks first; where nobody can answer, as in a script, it needs --yes. Calls on the line, on this machine or "
        "with this spool, store nothing more of the caller. The exit code is 0 when nothing is left, 1 when something "
        "is or cannot be read back or the answer was no, and 2 for wrong set-up or without --yes in a script.",
    )
    add_tag(known)
    add_service(known, spool=True)
    known.add_argument("--yes", action="store_true", help="Delete without asking.")
    known.add_argument("--json", action="store_true", help="Print the result as one JSON object.")
    known.add_argument(
        "--timeout",
        type=float,
        default=ERASE_TIMEOUT,
        metavar="SECONDS",
        help="How long to delete what comes up again. [default: %(default)g]",
    )
    given = known.parse_args(arguments)
    spool_dir: Path | None = given.spool_dir
    check_spool_dir(known, spool_dir)
    if not given.yes and not sys.stdin.isatty():
        print("Nothing was deleted: nobody is there to ask. Say --yes to delete without.", file=sys.stderr)
        return WRONG_SETUP
    if not given.yes and not _confirmed():
        print("Nothing was deleted.", file=sys.stderr)
        return FAILED

    async def work(store: MemoryStore) -> int:
        result = await erase_everywhere(store, given.tag, spool_dir=spool_dir, timeout=given.timeout)
        if given.json:
            print(json.dumps({"tag": given.tag, **asdict(result), "clean": result.clean}))
        else:
            _report(result, given.tag)
        return 0 if result.clean else FAILED

    return with_store(given.base_url, work)


def _confirmed() -> bool:
    # Not on standard output, which may be a file for the result.
    print(
        "Delete everything that is known of this caller? It cannot be undone. [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(result: Erasure, tag: str) -> None:
    print(f"Tag:       {tag}")
    print(f"Deleted:   {counted(result.documents, 'document')}, {_memories(result.memories)}")
    print(f"Not sent:  {counted(result.turns, 'turn')} that waited in the spool")
    left = [
        counted(result.left_documents, "document") if result.left_documents else "",
        _memories(result.left_memories) if result.left_memories else "",
        f"{result.left_marks} forgotten ones that the service keeps" if result.left_marks else "",
        *(f"something in {place}" for place in result.shown),
    ]
    none = "not known, since it cannot be read back" if result.unread else "nothing"
    print(f"Left:      {', '.join(filter(None, left)) or none}")
    if result.later:
        print(f"Kept:      {counted(result.later, 'call')} that began after this did")
    if result.unread:
        print(f"Not read:  {', '.join(result.unread)}")
    for what, where in _problems(result).items():
        print(f"Problem:   {', '.join(where)}: {what}")
    if result.clean:
        print("Read back: nothing is known of this caller")
        if not (result.documents or result.memories or result.turns):
            print("To note:   nothing was found to delete either; was it the right tag?")
    elif any("deleting the container tag" in problem for problem in result.problems):
        print("To do:     run this again with a key of an owner or admin, who may delete a container tag")
    elif result.unmarked:
        print(
            "To do:     run this again as who may write to the spool and cache directories of this machine's workers"
        )
    else:
        print("To do:     run this again in a few minutes; `supermemory-livekit doctor` looks for the cause")


def _problems(result: Erasure) -> dict[str, list[str]]:
    """What went wrong, with all that it kept from being done: one outage is one line."""
    found: dict[str, list[str]] = {}
    for one in result.problems:
        where, what = problem(one)
        found.setdefault(what, []).append(where)
    return found


def _memories(number: int) -> str:
    return f"{number} {'memory' if number == 1 else 'memories'}"
