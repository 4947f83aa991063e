"""Soaks the storing of calls: faults, kills and cancellations, then a count of every turn.

    python -m bench.soak [--seed 1] [--calls 200] [--turns 6000] [--fault-share 0.3] [--kills 20] [--no-spool]

Worker processes make calls over real `AgentSession`s with scripted models; `supermemory-livekit serve` runs in a
process of its own, behind a proxy that delays, resets, refuses, answers garbage, hangs, and carries requests out after
their client has gone (1.5 s at most). Workers and the service are killed and started again. In the end
`supermemory-livekit flush` delivers what the spool holds, and every document is compared with what was spoken.

lost: not stored. doubled: stored twice. reordered: below a turn that was spoken later. crossed: under another caller or
in another document. unsent_in_spool: left after `flush`. Exit code 1 when one of them is not 0, 2 when the soak itself
failed. Without a spool a turn is excused when its process was ended and no answer to its write had come.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from .check import Verdict, compare, read_documents
from .plan import PlannedKill, Size, planned_calls, planned_kills, rings_again
from .processes import Proxy, Service, SoakError, Worker, flush_command, service_key
from .report import Report
from .truth import Spoken, spoken_turns

NOT_RESUMED = 0.25
"""Share of the calls of an ended worker with which nobody goes on: their callers ring again, in other rooms."""

LONGEST_DOWN = 2.0
"""Most seconds that a killed service stays away."""

FLUSHES = 3
"""How often `flush` is run while it says that something is left."""

_LOOK = 0.2


class Soak:
    """One run in a folder."""

    def __init__(self, folder: Path, size: Size, share: float, limit: float) -> None:
        self._folder = folder
        self._size = size
        self._deadline = time.monotonic() + limit
        self._made = random.Random(f"{size.seed} run")
        self._kills = planned_kills(size)
        self.kills: Counter[str] = Counter()
        self._service = Service(folder)
        self._workers: list[Worker] = []
        try:
            self._service.ready()
            self._proxy = Proxy(folder, self._service, size.seed, share)
        except BaseException:
            self._service.kill()
            raise
        self._down_until: float | None = None

    def run(self) -> tuple[Verdict, int]:
        """Make all calls, deliver what is left, and compare. Returns what is wrong, and what is left in the spool."""
        try:
            for slot, calls in enumerate(planned_calls(self._size)):
                self._workers.append(Worker(self._folder, slot, self._proxy.url, self._size, calls))
            while self._at_work():
                if time.monotonic() > self._deadline:
                    raise SoakError("the soak took longer than --limit")
                self._kill_what_is_due()
                time.sleep(_LOOK)
            if self._down_until is not None:
                self._service.start()
            self._service.ready()
            self._proxy.stop()
            unsent = self._deliver() if self._size.spool else 0
            documents = read_documents(self._service.url, service_key)
        finally:
            for process in (*self._workers, self._proxy, self._service):
                process.kill()
        return compare(spoken_turns(self._folder), documents, self._excuse()), unsent

    def _at_work(self) -> bool:
        working = False
        for worker in self._workers:
            if not worker.look():
                working = True
                continue
            going_on, to_come = worker.left()
            calls = [
                rings_again(call, call.turns) if self._made.random() < NOT_RESUMED else call
                for call in going_on
            ]
            if calls or to_come:
                worker.next_generation([*calls, *to_come])
                working = True
        if self._down_until is not None and time.monotonic() > self._down_until:
            self._service.start()
            self._down_until = None
        return working

    def _kill_what_is_due(self) -> None:
        if not self._kills or self._spoken() < self._kills[0].after:
            return
        kill: PlannedKill = self._kills[0]
        if kill.kind == "service kill -9":
            if self._down_until is not None:
                return
            self._service.kill()
            self._down_until = time.monotonic() + self._made.uniform(0.0, LONGEST_DOWN)
        else:
            workers = [worker for worker in self._workers if worker.can_be_killed]
            if not workers:
                return
            number = signal.SIGKILL if kill.kind == "worker kill -9" else signal.SIGTERM
            self._made.choice(workers).end(number)
        self._kills.pop(0)
        self.kills[kill.kind] += 1

    def _spoken(self) -> int:
        return sum(path.read_bytes().count(b'"said"') for path in self._folder.glob("truth-*.jsonl"))

    def _deliver(self) -> int:
        printed = ""
        for _ in range(FLUSHES):
            code, printed = flush_command(self._folder, self._service.url)
            if code == 0:
                break
        counts = [
            int(number)
            for number in re.findall(r"^(?:Not delivered|Without a caller): +(\d+)", printed, re.M)
        ]
        if not counts:
            raise SoakError("flush said nothing; see flush.log")
        return sum(counts)

    def _excuse(self) -> Callable[[Spoken], str | None]:
        if self._size.spool:
            return lambda turn: None
        report = Report(self._folder)
        acknowledged, over = report.acknowledged, report.over
        deaths = {
            (worker.slot, generation): how
            for worker in self._workers
            for generation, how in worker.deaths.items()
        }

        def excuse(turn: Spoken) -> str | None:
            how = deaths.get(turn.worker)
            if how is None or turn.token in acknowledged or (turn.worker, turn.session_id) in over:
                return None
            return f"unanswered at {how}"

        return excuse


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--turns", type=int, default=6000, help="of all calls together")
    parser.add_argument(
        "--fault-share", type=float, default=0.3, help="share of the requests that meet a fault"
    )
    parser.add_argument("--kills", type=int, default=20, help="of workers and the service together")
    parser.add_argument("--no-spool", action="store_true")
    parser.add_argument("--workers", type=int, default=4, help="processes")
    parser.add_argument("--at-once", type=int, default=6, help="calls at once in each process")
    parser.add_argument("--pace", type=float, default=1.0, help="mean pause between exchanges, seconds")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which the soak gives up")
    parser.add_argument("--keep", type=Path, help="a new folder for logs, truth and database, which is kept")
    return parser.parse_args(arguments)


def main() -> int:
    options = parsed()
    size = Size(
        seed=options.seed,
        calls=options.calls,
        turns=options.turns,
        kills=options.kills,
        workers=min(options.workers, options.calls),
        at_once=options.at_once,
        pace=options.pace,
        spool=not options.no_spool,
    )
    folder = options.keep or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        soak = Soak(folder, size, options.fault_share, options.limit)
        verdict, unsent = soak.run()
    except SoakError as error:
        print(f"The soak failed: {error} (in {folder})", file=sys.stderr)
        return 2
    report = Report(folder)
    print(
        f"seed {size.seed}; {size.workers} workers, {size.at_once} calls at once in each; "
        f"{'with' if size.spool else 'without'} a spool; {time.monotonic() - began:.0f} s\n"
    )
    print(report.table(soak.kills))
    for line in report.findings(verdict):
        print(line)
    for reason, count in sorted(verdict.excused.items()):
        print(f"excused, {reason}: {count} turns")
    values = {
        "calls": report.calls,
        "turns": report.turns,
        "faults": report.faults,
        "kills": sum(soak.kills.values()),
        "lost": len(verdict.lost),
        "doubled": len(verdict.doubled),
        "reordered": len(verdict.reordered),
        "crossed": len(verdict.crossed),
        "unsent_in_spool": unsent,
    }
    good = verdict.good and not unsent
    if good and options.keep is None:
        shutil.rmtree(folder)
    elif not good:
        print(f"kept for a closer look: {folder}")
    print(" ".join(f"{name}={value}" for name, value in values.items()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
