"""What a soak did, from the logs of its proxy and its workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from .check import Verdict
from .truth import events, spoken_turns, truth_files

__all__ = ["Report"]

_WRITE = "POST /v3/documents"
_SHOWN = 5
"""Findings of each kind that are told in full."""

_RECALL_TIMEOUT = 2.0
"""Seconds that a reply may wait for memory at most (`InputParams.recall_timeout`)."""

_MARGIN = 0.5
"""Seconds that the rest of a reply may take, in a session whose model answers at once."""


class Report:
    """Figures and findings of the run in this folder."""

    def __init__(self, folder: Path) -> None:
        self._requests = [dict(request) for request in events(folder / "requests.jsonl")]
        self._notes = {worker: list(events(path)) for worker, path in truth_files(folder)}
        self._spoken = spoken_turns(folder)

    @property
    def calls(self) -> int:
        """Calls in which something was said."""
        return len({turn.session_id for turn in self._spoken.values()})

    @property
    def turns(self) -> int:
        return sum(turn.confirmed for turn in self._spoken.values())

    @property
    def faults(self) -> int:
        """Requests that met a fault that was drawn for them. Those that met a dead service are not counted."""
        return sum(request["fault"] != "none" and "late" not in request for request in self._requests)

    @cached_property
    def acknowledged(self) -> frozenset[str]:
        """Turns whose write was answered with success, to a client that was still there."""
        return frozenset(
            token
            for request in self._writes()
            if request.get("answered") and request["service"] == 200
            for token in request["tokens"]
        )

    @cached_property
    def over(self) -> frozenset[tuple[tuple[int, int], str]]:
        """Calls that ended by themselves, and in which worker."""
        return frozenset(
            (worker, note["session_id"])
            for worker, notes in self._notes.items()
            for note in notes
            if note["event"] == "end"
        )

    def table(self, kills: Mapping[str, int]) -> str:
        requests = [request for request in self._requests if "late" not in request]
        kinds = Counter(request["fault"] for request in requests if request["fault"] != "none")
        lines = [f"{'requests':36}{len(requests):7}"]
        lines += [f"  {kind:34}{count:7}" for kind, count in sorted(kinds.items())]
        away = sum(isinstance(request.get("service"), str) for request in requests)
        lines.append(f"  {'met a dead service':34}{away:7}")
        lines += [f"{kind:36}{count:7}" for kind, count in sorted(kills.items())]
        did = Counter(note["what"] for note in self._noted("did"))
        lines += [f"{what:36}{count:7}" for what, count in sorted(did.items())]
        lines.append(f"{'writes':36}{sum(1 for _ in self._writes()):7}")
        lines.append(f"{'  with turns sent before':36}{self._retries():7}")
        if late := [request["late"] for request in self._requests if "late" in request]:
            lines.append(f"{'latest commit after its client':36}{max(late):7.2f} s")
        lines.append(f"{'slowest answer of the service':36}{self._slowest():7.2f} s")
        if replies := [(note["seconds"], note["late"]) for note in self._noted("reply")]:
            slowest = sorted(seconds for seconds, _ in replies)
            waited = sum(seconds - late > _RECALL_TIMEOUT + _MARGIN for seconds, late in replies)
            lines.append(f"{'replies':36}{len(replies):7}")
            lines.append(f"{'  median, slowest':36}{slowest[len(slowest) // 2]:7.2f} s{slowest[-1]:7.2f} s")
            lines.append(
                f"{'  slowest without a late event loop':36}{max(s - late for s, late in replies):7.2f} s"
            )
            lines.append(f"{'  that waited longer than for recall':36}{waited:7}")
        return "\n".join(lines)

    def findings(self, verdict: Verdict) -> Iterator[str]:
        """Each wrong turn with everything that happened to the requests which carried it."""
        carried: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for request in self._writes(late=True):
            for token in request["tokens"]:
                carried[token].append(request)
        for what in ("lost", "doubled", "reordered", "crossed"):
            for token in getattr(verdict, what)[:_SHOWN]:
                turn = self._spoken.get(token)
                if turn is None:
                    yield f"{what}: a line nobody spoke: {token}"
                    continue
                spoken = turn.order / 1e9
                yield f"{what}: {token} of worker {turn.worker} in {turn.document}"
                for request in carried[token]:
                    times = "".join(
                        f", {name} {request[name] - spoken:+.2f} s"
                        for name in ("began", "passed", "ended")
                        if name in request
                    )
                    yield f"    {request['fault']}: service {request.get('service')}{times}"

    def _noted(self, event: str) -> Iterator[dict[str, Any]]:
        for notes in self._notes.values():
            yield from (note for note in notes if note["event"] == event)

    def _writes(self, *, late: bool = False) -> Iterator[dict[str, Any]]:
        for request in self._requests:
            if request["route"] == _WRITE and (late or "late" not in request):
                yield request

    def _retries(self) -> int:
        seen: set[str] = set()
        again = 0
        for request in self._writes():
            again += not seen.isdisjoint(request["tokens"])
            seen.update(request["tokens"])
        return again

    def _slowest(self) -> float:
        return max(
            (
                request["passed"] - request["began"]
                for request in self._requests
                if "passed" in request and request["fault"] == "none"
            ),
            default=0.0,
        )
