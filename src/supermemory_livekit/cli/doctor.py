"""`doctor`: does the memory work from here, and what to do when it does not."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from supermemory_livekit.admin.diagnosis import Check, diagnose
from supermemory_livekit.admin.plain_words import setup
from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.scope import container_tag
from supermemory_livekit.sdk.client import SetupError, is_embedded
from supermemory_livekit.sdk.store import SDKStore, make_client

from .caller import BLANK_TAG, FAILED, WRONG_SETUP, add_service, key_is_set, parser, quiet_logs

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    known = parser(
        "doctor",
        "Check the key, the way to the service, the container tag, the clock, the API, and a round trip under a tag "
        "of its own that is erased again.",
        "One line for each, and what to do when it failed. The exit code is 0 when nothing failed, 1 when something "
        "did, and 2 for wrong set-up.",
    )
    known.add_argument(
        "--tag", help="A container tag, to see whether it is sent as it is. Nothing is asked of it."
    )
    add_service(known, spool=False)
    known.add_argument("--no-round-trip", action="store_true", help="Write nothing.")
    known.add_argument("--json", action="store_true", help="Print one JSON object for each check.")
    given = known.parse_args(arguments)
    quiet_logs()
    show = _show_json if given.json else _show
    checks: list[Check] = []
    if given.tag is not None:
        checks.append(_tag(given.tag))
        show(checks[-1])
    try:
        client = make_client(base_url=given.base_url)
        store = SDKStore(client)
    except ConfigurationError as error:
        told = setup(error)
        # "platform key" is about the key, too.
        name = error.setting.rpartition(" ")[2] if isinstance(error, SetupError) else "set-up"
        show(Check(name, "failed", told.found, told.advice))
        return WRONG_SETUP

    async def run() -> None:
        try:
            async for check in diagnose(
                store,
                client,
                key=key_is_set(),
                embedded=is_embedded(given.base_url),
                round_trip=not given.no_round_trip,
            ):
                checks.append(check)
                show(check)
        finally:
            await store.aclose()

    asyncio.run(run())
    return FAILED if any(check.state == "failed" for check in checks) else 0


def _tag(tag: str) -> Check:
    try:
        sent = container_tag(tag)
    except ConfigurationError:
        return Check(
            "tag", "failed", BLANK_TAG, "Give --tag the id that the caller has in the rest of your app."
        )
    if sent == tag:
        return Check("tag", "ok", "valid, and sent as it is")
    return Check(
        "tag", "ok", f"not valid as it is; sent as {sent}, which other clients of this caller have to use"
    )


def _show(check: Check) -> None:
    mark: str = check.state
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        colour = {"ok": "32", "failed": "31", "skipped": "33"}[check.state]
        mark = f"\033[{colour}m{check.state}\033[0m" + " " * (7 - len(check.state))
    print(f"{mark:7}  {check.name:10}  {check.found}", flush=True)
    if check.state == "failed" and check.advice:
        print(f"{'':7}  {'':10}  -> {check.advice}", flush=True)


def _show_json(check: Check) -> None:
    print(json.dumps(asdict(check)), flush=True)
