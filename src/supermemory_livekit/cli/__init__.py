"""The command `supermemory-livekit`. `demo` and `serve` need the extra `[local]`, and say so when that is missing."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

from supermemory_livekit._version import __version__

__all__ = ["main"]

_EXTRA = ("typer", "rich", "starlette", "uvicorn", "openai")
"""Modules that the other commands need, and that a core install need not have."""

CORE_COMMANDS = ("doctor", "erase", "export", "flush", "inspect")
"""Each is a module with a `main` of its own: a worker's host need not have the extra."""

_HELP_OF_CORE = f"""Usage: supermemory-livekit COMMAND [ARGS]...

  Memory for LiveKit voice agents, kept in Supermemory.

Commands:
  {", ".join(CORE_COMMANDS)}

With the extra "local" (pip install "supermemory-livekit[local]"):
  demo, serve
"""


def main() -> None:
    """Run the command with the arguments of this process. Exit code 2 means wrong usage, or a missing extra."""
    if sys.argv[1:] == ["--version"]:
        print(f"supermemory-livekit {__version__}")
        return
    if sys.argv[1:2] and sys.argv[1] in CORE_COMMANDS:
        command = import_module(f".{sys.argv[1]}", __name__)
        sys.exit(command.main(sys.argv[2:]))
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing and sys.argv[1:] in ([], ["--help"]):
        print(_HELP_OF_CORE, end="")
        return
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
