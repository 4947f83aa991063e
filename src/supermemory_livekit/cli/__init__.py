"""The command `supermemory-livekit`. It needs the extra `[local]`, and says so in one line when that is missing."""

from __future__ import annotations

import sys

from supermemory_livekit._version import __version__

__all__ = ["main"]

_EXTRA = frozenset({"openai", "rich", "starlette", "typer", "uvicorn"})
"""Modules that the extra `[local]` brings and a core install need not have."""


def main() -> None:
    """Run the command with the arguments of this process. Exit code 2 means wrong usage, or a missing extra."""
    if sys.argv[1:] == ["--version"]:
        print(f"supermemory-livekit {__version__}")
        return
    try:
        # Imported here: the command itself is installed without the extra.
        from .app import app

        app(prog_name="supermemory-livekit")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        print(
            f'This command needs the extra "local" ({error.name} is missing): '
            'pip install "supermemory-livekit[local]"',
            file=sys.stderr,
        )
        sys.exit(2)
