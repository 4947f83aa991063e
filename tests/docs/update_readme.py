"""Write the files that the README and the pages in docs/ show into them.

    python tests/docs/update_readme.py

A block between `<!-- snippet: PATH -->` and `<!-- end snippet -->` becomes the content of PATH, a path from the top
of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGES", "README", "REPOSITORY", "snippets", "updated"]

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").rglob("*.md"))]

_SNIPPET = re.compile(r"<!-- snippet: (?P<path>\S+) -->\n.*?<!-- end snippet -->", re.DOTALL)
_LANGUAGES = {".ini": "ini", ".py": "python", ".sh": "bash", ".toml": "toml"}


def snippets(text: str) -> list[str]:
    """The paths of the files that this Markdown text shows."""
    return [found["path"] for found in _SNIPPET.finditer(text)]


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
        page.write_text(updated(page.read_text("utf-8")), "utf-8")
