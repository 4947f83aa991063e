"""The command `supermemory-livekit`. All but `flush` needs the extra `[local]`, and says so when that is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from supermemory_livekit._version import __version__

__all__ = ["main"]

_EXTRA = ("typer", "rich", "starlette", "uvicorn", "openai")
"""Modules that the other commands need, and that a core install need not have."""


def main() -> None:
    """Run the command with the arguments of this process. Exit code 2 means wrong usage, or a missing extra."""
    if sys.argv[1:] == ["--version"]:
        print(f"supermemory-livekit {__version__}")
        return
    if sys.argv[1:2] == ["flush"]:  # a worker host need not have the extra
        from .flush import main as flush

        sys.exit(flush(sys.argv[2:]))
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        print(
            f'This command needs the extra "local" ({", ".join(missing)} missing): '
            'pip install "supermemory-livekit[local]"',
            file=sys.stderr,
        )
        sys.exit(2)
    # Imported here: the command itself is installed without the extra.
    from .app import app

    app(prog_name="supermemory-livekit")
