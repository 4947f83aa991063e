"""What the demo prints: plain lines, with colour on a terminal only and never wrapped by us."""

from __future__ import annotations

import re
import sys

from rich.console import Console
from rich.text import Text

__all__ = ["Output"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOMENT = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z\] ")
_SHOWN = 5
_WIDTH = 108


class Output:
    """Prints to standard output. `verbose` shows recalled and stored text in full."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that cannot show a letter is no reason to stop
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def line(self, text: str = "", style: str = "") -> None:
        """One line, at once: several processes write to the same place."""
        self._console.print(Text(_CONTROL.sub(" ", text), style=style))
        self._console.file.flush()

    def heading(self, text: str) -> None:
        self.line()
        self.line(text, "bold")

    def spoke(self, who: str, text: str) -> None:
        """Somebody's words."""
        self.line(f"  {who + ':':<8}{text}", "cyan" if who == "Caller" else "green")

    def note(self, text: str) -> None:
        """What happened behind the words."""
        self.line(f"      {text}", "dim")

    def lines(self, lines: list[str]) -> None:
        """Text that was recalled or stored, shortened unless verbose."""
        shown = lines if self._verbose else lines[:_SHOWN]
        for line in shown:
            self.note(f"  | {line if self._verbose else _shortened(line)}")
        if len(lines) > len(shown):
            self.note(f"  | … {len(lines) - len(shown)} more")


def _shortened(line: str) -> str:
    """Without the moments in call text, and cut where it grows wide."""
    line = _MOMENT.sub("", line)
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
