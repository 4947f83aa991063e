"""What the commands about one caller share: their arguments, the way to the service, and how they print.

They need nothing but the core install: a worker's host has to be able to run them. Tables are drawn by rich where
it is installed and somebody looks; through a pipe the same comes as plain lines.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from supermemory_livekit.admin.plain_words import failure, setup
from supermemory_livekit.errors import ConfigurationError, ServiceError
from supermemory_livekit.scope import container_tag
from supermemory_livekit.sdk.client import is_embedded
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.store import MemoryStore

__all__ = [
    "BLANK_TAG",
    "FAILED",
    "WRONG_SETUP",
    "add_service",
    "add_tag",
    "check_spool_dir",
    "key_is_set",
    "one_line",
    "open_store",
    "parser",
    "print_table",
    "quiet_logs",
    "with_store",
]

FAILED = 1
WRONG_SETUP = 2
"""Exit codes, besides 0."""

BLANK_TAG = "it is blank"


def parser(command: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """A parser for one command."""
    return argparse.ArgumentParser(
        prog=f"supermemory-livekit {command}",
        description=f"{description} The key comes from SUPERMEMORY_API_KEY.",
        epilog=epilog,
    )


def add_tag(arguments: argparse.ArgumentParser, *, required: bool = True) -> None:
    """`--tag`, read as `bind(container_tag=…)` reads it."""
    arguments.add_argument(
        "--tag",
        required=required,
        type=_tag,
        help="The caller: the container tag, or what your app makes it from, such as a phone number.",
    )


def add_service(arguments: argparse.ArgumentParser, *, spool: bool) -> None:
    """`--base-url`, `--json`, and `--spool-dir` where it matters."""
    arguments.add_argument(
        "--base-url",
        default=os.environ.get("SUPERMEMORY_BASE_URL"),
        metavar="URL",
        help='Where Supermemory answers; "local" is the embedded service. [env: SUPERMEMORY_BASE_URL]',
    )
    if spool:
        arguments.add_argument(
            "--spool-dir",
            type=Path,
            metavar="DIR",
            help="Directory that the workers were given for what is not stored yet.",
        )


def check_spool_dir(arguments: argparse.ArgumentParser, directory: Path | None) -> None:
    """End with exit code 2 where the given spool is none: a typing error would pass for an empty one."""
    if directory is not None and not directory.expanduser().is_dir():
        arguments.error(f"--spool-dir: {directory} is no directory")


def _tag(value: str) -> str:
    try:
        return container_tag(value)
    except ConfigurationError:
        raise argparse.ArgumentTypeError(BLANK_TAG) from None


def quiet_logs() -> None:
    """Warnings of this package on standard error, and nothing of the libraries below."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("livekit").setLevel(logging.CRITICAL)


def key_is_set() -> bool:
    """Whether there is a key in the environment, right or wrong."""
    return bool(os.environ.get("SUPERMEMORY_API_KEY", "").strip())


def open_store(base_url: str | None) -> SDKStore | None:
    """The way to the service; None after one line that says what is wrong with the settings. Sends nothing."""
    try:
        return SDKStore(make_client(base_url=base_url))
    except ConfigurationError as error:
        told = setup(error)
        print(f"Wrong set-up: {told.found}. {told.advice}", file=sys.stderr)
        return None


def with_store(base_url: str | None, work: Callable[[MemoryStore], Awaitable[int]]) -> int:
    """Open the service, do the work, close it. Returns the exit code, and says in one line what went wrong."""
    quiet_logs()
    store = open_store(base_url)
    if store is None:
        return WRONG_SETUP

    async def run() -> int:
        try:
            return await work(store)
        finally:
            await store.aclose()

    try:
        return asyncio.run(run())
    except (ServiceError, NotImplementedError) as error:
        told = failure(error, key=key_is_set(), embedded=is_embedded(base_url))
        print(
            f"Failed: {told.found}. {told.advice} `supermemory-livekit doctor` looks closer.", file=sys.stderr
        )
    return FAILED


def one_line(text: str, width: int | None = None) -> str:
    """Stored text on one line, without characters that could steer a terminal; cut to `width` when given."""
    shown = " ".join("".join(" " if unicodedata.category(one)[0] == "C" else one for one in text).split())
    return shown if width is None or len(shown) <= width else shown[: max(1, width - 1)] + "…"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; its last column takes the room that is left."""
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _print_rich(title, columns, rows)
        return
    print(f"{title}:")
    widths = [max([len(columns[i]), *(len(row[i]) for row in rows)]) for i in range(len(columns) - 1)]
    for row in [columns, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  " + "  ".join([*cells, row[-1]]))


def _print_rich(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", width=min(shutil.get_terminal_size().columns, 160))
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in stored words are no markup
    Console().print(table)
