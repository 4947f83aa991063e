"""Write the files, and the helps of commands, that the README and the pages in docs/ show into them.

    python tests/docs/update_readme.py

A block between `<!-- snippet: PATH -->` and `<!-- end snippet -->` becomes the content of PATH, a path from the top
of the repository. One between `<!-- help: COMMAND -->` and `<!-- end help -->` becomes what that command of
`supermemory-livekit` says about itself.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["PAGES", "README", "REPOSITORY", "help_of", "helps", "snippets", "updated"]

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").rglob("*.md"))]

_SNIPPET = re.compile(r"<!-- snippet: (?P<path>\S+) -->\n.*?<!-- end snippet -->", re.DOTALL)
_HELP = re.compile(r"<!-- help: (?P<command>\w+) -->\n.*?<!-- end help -->", re.DOTALL)
_LANGUAGES = {".ini": "ini", ".py": "python", ".sh": "bash", ".toml": "toml"}


def snippets(text: str) -> list[str]:
    """The paths of the files that this Markdown text shows."""
    return [found["path"] for found in _SNIPPET.finditer(text)]


def helps(text: str) -> dict[str, str]:
    """The commands whose help this Markdown text shows, with the text that it shows of each."""
    return {found["command"]: found[0] for found in _HELP.finditer(text)}


def help_of(command: str) -> str:
    """What `supermemory-livekit COMMAND --help` prints."""
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    asked = [sys.executable, "-m", "supermemory_livekit.cli", *command.split(), "--help"]
    return subprocess.run(asked, env=environment, check=True, capture_output=True, text=True).stdout


def updated(text: str) -> str:
    """The same Markdown text with every file in it as it is now."""
    return _SNIPPET.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    path = REPOSITORY / found["path"]
    code = path.read_text("utf-8").strip("\n")
    return (
        f"<!-- snippet: {found['path']} -->\n```{_LANGUAGES[path.suffix]}\n{code}\n```\n<!-- end snippet -->"
    )


if __name__ == "__main__":
    for page in PAGES:
        shown = updated(page.read_text("utf-8"))
        for command, block in helps(shown).items():
            lines = "\n".join(line.rstrip() for line in help_of(command).strip().splitlines())
            shown = shown.replace(
                block, f"<!-- help: {command} -->\n```text\n{lines}\n```\n<!-- end help -->"
            )
        page.write_text(shown, "utf-8")
