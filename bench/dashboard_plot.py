"""The panels of a dashboard, drawn as SVG where Grafana would put them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["Panel", "Series", "plot"]

UNIT, ROW = 42, 26
"""Pixels of a column and of a row of the grid."""

COLOURS = ("#15803d", "#c2410c", "#2563eb", "#7c3aed", "#a16207", "#0e7490", "#be185d", "#65a30d")
TITLE = "Preview, drawn from the dashboard's own queries to Prometheus; not a screenshot of Grafana"


@dataclass(frozen=True)
class Series:
    """One line: points of seconds since the start, and value."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One panel, and what the query of each of its targets answered."""

    title: str
    kind: str
    unit: str
    stacked: bool
    place: tuple[int, ...]
    """Column, row, columns, rows."""
    series: Sequence[Series]


def plot(panels: Sequence[Panel], path: Path, *, seconds: float) -> None:
    """Write the panels, whose time axes are so many seconds long."""
    width = UNIT * max(panel.place[0] + panel.place[2] for panel in panels) + 20
    height = ROW * max(panel.place[1] + panel.place[3] for panel in panels) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        '<g font-family="sans-serif" font-size="11" fill="#1f2328">',
        f'<rect width="{width}" height="{height}" fill="#f6f8fa"/>',
        f'<text x="14" y="24" font-size="14">{TITLE}</text>',
    ]
    for panel in panels:
        parts += _panel(panel, seconds)
    parts.append("</g></svg>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n")


def _panel(panel: Panel, seconds: float) -> list[str]:
    x, y = 10 + UNIT * panel.place[0], 40 + ROW * panel.place[1]
    width, height = UNIT * panel.place[2] - 8, ROW * panel.place[3] - 8
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="#fff" stroke="#d0d7de" rx="3"/>',
        f'<text x="{x + 10}" y="{y + 18}" font-weight="bold">{escape(panel.title)}</text>',
    ]
    if panel.kind == "stat":
        values = [(series.name, series.points[-1][1]) for series in panel.series if series.points]
        shown = ", ".join(
            f"{name}: {_value(value, panel.unit)}" if len(values) > 1 else _value(value, panel.unit)
            for name, value in values
        )
        size = 26 if len(values) < 2 else 15
        parts.append(
            f'<text x="{x + 10}" y="{y + 62}" font-size="{size}">{escape(shown or "no data")}</text>'
        )
        return parts
    left, right, top, bottom = x + 52, x + width - 12, y + 30, y + height - 44
    lines = _stacked(panel.series) if panel.stacked else [list(series.points) for series in panel.series]
    most = max((value for line in lines for _, value in line), default=0.0) or 1.0
    for share in (0.0, 0.5, 1.0):
        at = bottom - (bottom - top) * share
        parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#e5e7eb"/>')
        label = _value(most * share, panel.unit)
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for minute in range(int(seconds // 60) + 1):
        at = left + (right - left) * 60 * minute / seconds
        parts.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{minute} min</text>')
    legend = float(left)
    for number, (series, line) in enumerate(zip(panel.series, lines, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(
            f"{left + (right - left) * at / seconds:.1f},{bottom - (bottom - top) * value / most:.1f}"
            for at, value in line
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<path d="M{legend:.0f} {bottom + 28}h14" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{legend + 18:.0f}" y="{bottom + 32}">{escape(series.name)}</text>')
        legend += 34 + 6.2 * len(series.name)
    return parts


def _stacked(series: Sequence[Series]) -> list[list[tuple[float, float]]]:
    """Each line on top of those before it."""
    below: dict[float, float] = {}
    lines: list[list[tuple[float, float]]] = []
    for one in series:
        line: list[tuple[float, float]] = []
        for at, value in one.points:
            below[at] = below.get(at, 0.0) + value
            line.append((at, below[at]))
        lines.append(line)
    return lines


def _value(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{value:.0%}"
    if unit == "s":
        return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.2f} s"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
