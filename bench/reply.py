"""What memory costs the caller: the time from the end of their words to the first sound of the reply.

    python bench/reply.py [--turns 200] [--seed 1] [--quick] [--plot FILE]

Calls in real time, many at once, strategies in a seeded mixed order: real `AgentSession`s with a scripted line
(`reply_calls.Line` states its delays) and the embedded service in a process of its own, over HTTP, every request of
every strategy behind a delay drawn from a lognormal distribution with a median of 0.85 s and a 95th percentile of
2.1 s, which is what users have published of the hosted service. Callers have 20 to 500 memories; each question asks for
one of them, half of the questions end with the word that tells which.

`added` is the time above the median of calls without memory, for questions of equal form. `needle` is the share of
turns in which the model was shown the memory that answers the question. The strategies are described in
`reply_calls.STRATEGIES`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import tempfile
import time
from pathlib import Path

from reply_calls import STRATEGIES, Call, Line, make_call
from reply_figures import Report, share_of
from reply_network import Delays, Service, service
from reply_people import Person, people
from reply_plot import plot
from supermemory_livekit.retrieval import load_embedder

QUESTIONS = 10
"""Asked in one call."""

PLOT = Path(__file__).parents[1] / "docs" / "images" / "reply.svg"

HUNG = ("ours-hangs", "ours-hung")
HUNG_CALLERS = 3
HUNG_ROUNDS = 2
"""Calls of 20 turns with a service that hangs, by so many callers."""

NAMES = {
    "none": "no memory",
    "waiting": "waiting in llm_node",
    "hook": "on_user_turn_completed",
    "early": "early search, no mirror",
    "ours": "this package",
    "ours-hangs": "… service hangs after preload",
    "ours-hung": "… service hung from the start",
}


def memory_sizes(callers: int, least: int, most: int) -> list[int]:
    """Numbers of memories from `least` to `most`, each as much larger than the one before."""
    steps = max(1, callers - 1)
    return [round(least * (most / least) ** (number / steps)) for number in range(callers)]


def planned(
    callers: list[Person], strategies: list[str], mixed: random.Random
) -> list[tuple[str, Person, int]]:
    """Strategy, caller and rounds of every call, in the order in which they ring; long calls first."""
    # Spread over the sizes, so that a hanging service meets small and large memories.
    few = callers[:: max(1, len(callers) // HUNG_CALLERS)][:HUNG_CALLERS]
    long = [(strategy, person, HUNG_ROUNDS) for person in few for strategy in strategies if strategy in HUNG]
    short = [(strategy, person, 1) for person in callers for strategy in strategies if strategy not in HUNG]
    mixed.shuffle(short)
    return long + short


async def run(
    callers: list[Person], options: argparse.Namespace, where: Service, delays: Delays
) -> tuple[list[Call], list[float]]:
    """Make all calls. Returns them, and how late the event loop was every 10 ms, in seconds."""
    load_embedder()
    for person in callers:
        await where.fill(person.tag, person.memories)
    await where.settled(callers[-1].tag)
    mixed = random.Random(options.seed)
    slots = asyncio.Semaphore(options.at_once)
    calls: list[Call] = []

    async def ring(strategy: str, person: Person, rounds: int) -> None:
        async with slots:
            # Calls do not keep step with each other.
            await asyncio.sleep(3 * mixed.random())
            calls.append(await make_call(strategy, person, rounds, where, delays, Line(), str(options.seed)))

    lateness: list[float] = []
    watch = asyncio.ensure_future(_watch_the_loop(lateness))
    try:
        await asyncio.gather(*(ring(*call) for call in planned(callers, options.strategies, mixed)))
    finally:
        watch.cancel()
    return calls, lateness


async def _watch_the_loop(lateness: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        lateness.append(time.perf_counter() - began - 0.01)


def table(report: Report, strategies: list[str]) -> str:
    lines = [
        f"{'':32} turns      reply ms      added ms  needle  … late  searches   LLM  worst call",
        f"{'':32}          p50    p95    p50    p95                  per turn          added ms",
    ]
    for strategy in strategies:
        of = report.of(strategy)
        lines.append(
            f"{NAMES[strategy]:32}{of.turns:6}{of.reply_p50:7.0f}{of.reply_p95:7.0f}{of.added_p50:7.0f}"
            f"{of.added_p95:7.0f}{of.needle_rate:8.3f}{of.needle_rate_late:8.3f}{of.searches:10.2f}"
            f"{of.requests:6.2f}{of.total_added:12.0f}"
        )
    return "\n".join(lines)


def last_line(report: Report) -> str:
    ours, waiting, early = report.of("ours"), report.of("waiting"), report.of("early")
    ready, _ = report.ready()
    values = {
        "added_p50_ms": f"{ours.added_p50:.1f}",
        "added_p95_ms": f"{ours.added_p95:.1f}",
        "needle_rate": f"{ours.needle_rate:.3f}",
        "waiting_added_p50_ms": f"{waiting.added_p50:.1f}",
        "waiting_added_p95_ms": f"{waiting.added_p95:.1f}",
        "waiting_needle_rate": f"{waiting.needle_rate:.3f}",
        "hook_added_p50_ms": f"{report.of('hook').added_p50:.1f}",
        "early_added_p50_ms": f"{early.added_p50:.1f}",
        "early_needle_rate": f"{early.needle_rate:.3f}",
        "remote_searches_per_turn": f"{ours.searches:.3f}",
        "llm_calls_per_turn": f"{ours.requests:.3f}",
        "hung_total_added_ms": f"{report.of('ours-hung').total_added:.1f}",
        "mirror_ready_ms": f"{ready:.1f}",
    }
    return " ".join(f"{name}={value}" for name, value in values.items())


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=200, help="turns per strategy, ten a call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="40 turns, no plot")
    parser.add_argument("--memories", default="20,500", help="fewest and most memories of a caller")
    parser.add_argument("--delays", default="0.85,2.1", help="median and 95th percentile, seconds")
    parser.add_argument("--at-once", type=int, default=24, help="calls at once")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="some of them, for a shorter run")
    parser.add_argument("--plot", type=Path, help=f"where to write the plot, as SVG; {PLOT.name} of the docs")
    options = parser.parse_args()
    options.strategies = options.strategies.split(",")
    if options.quick:
        options.turns = 40
    elif options.plot is None and options.strategies == list(STRATEGIES):
        options.plot = PLOT
    return options


def main() -> None:
    options = parsed()
    # What is made to fail here is reported in the table; warnings of ours would only hide it.
    logging.disable(logging.WARNING)
    least, most = map(int, options.memories.split(","))
    callers = people(options.seed, memory_sizes(max(2, options.turns // QUESTIONS), least, most), QUESTIONS)
    median, p95 = map(float, options.delays.split(","))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        # Empty at first, then shared, like that of a machine which takes calls.
        os.environ["SUPERMEMORY_LIVEKIT_CACHE"] = str(Path(name) / "cache")
        with service(Path(name)) as where:
            calls, lateness = asyncio.run(run(callers, options, where, Delays(median, p95)))
    report = Report(calls)
    print(
        f"seed {options.seed}; {len(callers)} callers with {least} to {most} memories; {options.at_once} calls at "
        f"once; delays: lognormal, median {median:g} s, p95 {p95:g} s; {time.perf_counter() - began:.0f} s\n"
    )
    print(table(report, options.strategies))
    ready, complete = report.ready()
    print(
        f"\nmirror searchable {ready:.0f} ms, all of it with vectors {complete:.0f} ms after preload began (median)"
    )
    shares = {share: 1e3 * share_of(lateness, share) for share in (0.5, 0.95, 0.99)}
    print("event loop late by " + ", ".join(f"p{100 * share:g} {ms:.1f} ms" for share, ms in shares.items()))
    if silent := sum(call.silent for call in calls):
        print(f"{silent} turns got no reply and are left out")
    if options.plot is not None:
        plot({NAMES[one]: report.replies(one) for one in options.strategies}, options.plot)
        print(f"plot: {options.plot.name}")
    print(last_line(report))


if __name__ == "__main__":
    main()
