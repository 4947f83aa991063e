"""The figures of the reply benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reply_calls import Call, Turn

__all__ = ["Figures", "Report", "share_of"]


def share_of(values: Sequence[float], share: float) -> float:
    """The value below which that share lies; NaN of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return statistics.fmean(listed) if listed else float("nan")


@dataclass(frozen=True)
class Figures:
    """Of one strategy. Times in milliseconds."""

    turns: int
    reply_p50: float
    reply_p95: float
    added_p50: float
    added_p95: float
    needle_rate: float
    needle_rate_late: float
    """Of questions that end with the telling word."""
    searches: float
    """Of the service, per turn."""
    requests: float
    """To the model, per turn."""
    total_added: float
    """All turns of one call together, in the worst call."""


class Report:
    """Figures of all strategies, against the calls without memory."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._plain: dict[int, float] = {}
        """Median reply without memory by number of segments: what equal questions take."""
        plain = self._turns("none")
        for segments in {turn.segments for turn in plain}:
            self._plain[segments] = statistics.median(
                turn.reply for turn in plain if turn.segments == segments
            )
        self._plain_overall = statistics.median(turn.reply for turn in plain) if plain else float("nan")

    def of(self, strategy: str) -> Figures:
        turns = self._turns(strategy)
        added = [self._added(turn) for turn in turns]
        replies = [1e3 * turn.reply for turn in turns]
        totals = [sum(map(self._added, call.turns)) for call in self._calls if call.strategy == strategy]
        return Figures(
            turns=len(turns),
            reply_p50=share_of(replies, 0.5),
            reply_p95=share_of(replies, 0.95),
            added_p50=share_of(added, 0.5),
            added_p95=share_of(added, 0.95),
            needle_rate=_mean(turn.found for turn in turns),
            needle_rate_late=_mean(turn.found for turn in turns if turn.late),
            searches=_mean(turn.searches for turn in turns),
            requests=_mean(turn.requests for turn in turns),
            total_added=max(totals, default=float("nan")),
        )

    def replies(self, strategy: str) -> list[float]:
        """Seconds from the end of speech to the first audio, in order."""
        return sorted(turn.reply for turn in self._turns(strategy))

    def ready(self) -> tuple[float, float]:
        """Milliseconds from the beginning of `preload` until the mirror could be searched, and until all of it was
        there with its vectors; medians."""
        ours = [call for call in self._calls if call.strategy == "ours"]
        return (
            1e3 * share_of([call.ready for call in ours if call.ready is not None], 0.5),
            1e3 * share_of([call.complete for call in ours if call.complete is not None], 0.5),
        )

    def _turns(self, strategy: str) -> list[Turn]:
        return [turn for call in self._calls if call.strategy == strategy for turn in call.turns]

    def _added(self, turn: Turn) -> float:
        return 1e3 * (turn.reply - self._plain.get(turn.segments, self._plain_overall))
