"""The plot of the reply benchmark, written as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["plot"]

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 50, 60
COLOURS = ("#8a8f98", "#c2410c", "#7c3aed", "#0e7490", "#15803d", "#65a30d", "#a16207")
DASHES = ("6 4", "", "", "", "", "7 3", "2 3")


def plot(replies: Mapping[str, Sequence[float]], path: Path, *, seconds: float = 4.0) -> None:
    """Write how the times from end of speech to first audio add up: one line a strategy, sorted seconds each."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        '<g font-family="sans-serif" font-size="13" fill="#1f2328">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="16">Replies that have begun, by time since the caller ended</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for half in range(int(2 * seconds) + 1):
        x = _x(half / 2, seconds)
        parts.append(f'<path d="M{x:.1f} {_y(0):.1f}v5" stroke="#1f2328"/>')
        parts.append(f'<text x="{x:.1f}" y="{_y(0) + 20:.1f}" text-anchor="middle">{half / 2:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">seconds to the first audio</text>'
    )
    for number, (name, times) in enumerate(replies.items()):
        style = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{DASHES[number % len(DASHES)]}"'
        parts.append(f'<path d="{_steps(times, seconds)}" fill="none" stroke-width="2" {style}/>')
        y = _y(0.0) - 20 - 20 * (len(replies) - 1 - number)
        x = WIDTH - RIGHT - 250
        parts.append(f'<path d="M{x} {y - 4:.1f}h30" fill="none" stroke-width="2" {style}/>')
        parts.append(f'<text x="{x + 38}" y="{y:.1f}">{escape(name)}</text>')
    parts.append("</g></svg>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n")


def _x(time: float, seconds: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(time, seconds) / seconds


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _steps(times: Sequence[float], seconds: float) -> str:
    steps = [f"M{_x(0, seconds):.1f} {_y(0):.1f}"]
    for number, time in enumerate(times, 1):
        if time > seconds:
            break
        steps.append(f"H{_x(time, seconds):.1f}V{_y(number / len(times)):.1f}")
    return "".join([*steps, f"H{_x(seconds, seconds):.1f}"])
