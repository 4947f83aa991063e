"""What memory costs the caller: the time from the end of their words to the first sound of the reply.

python bench/reply.py [--turns 200] [--seed 1] [--quick] [--plot docs/images/reply.svg]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

from reply_calls import STRATEGIES, Call, Line, make_call
from reply_network import Delays, Service, service
from reply_people import Person, people

from supermemory_livekit.retrieval import load_embedder


async def lag(out: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        out.append(time.perf_counter() - began - 0.01)


async def run(
    callers: list[Person], strategies: list[str], at_once: int, seed: int, where: Service, delays: Delays
) -> tuple[list[Call], list[float]]:
    load_embedder()
    for person in callers:
        await where.fill(person.tag, person.memories)
    jobs = [(strategy, person, 1) for person in callers for strategy in strategies]
    order = random.Random(seed)
    order.shuffle(jobs)
    slots = asyncio.Semaphore(at_once)
    calls: list[Call] = []

    async def one(strategy: str, person: Person, rounds: int) -> None:
        async with slots:
            await asyncio.sleep(order.random())
            calls.append(await make_call(strategy, person, rounds, where, delays, Line(), str(seed)))

    lags: list[float] = []
    watch = asyncio.ensure_future(lag(lags))
    await asyncio.gather(*(one(*job) for job in jobs))
    watch.cancel()
    return calls, lags


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--callers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    options = parser.parse_args()
    callers = people(options.seed, [20, 60, 150, 500][: options.callers], 5)
    with tempfile.TemporaryDirectory() as name:
        os.environ["SUPERMEMORY_LIVEKIT_CACHE"] = name
        began = time.perf_counter()
        with service(Path(name)) as where:
            calls, lags = asyncio.run(
                run(callers, options.strategies.split(","), options.at_once, options.seed, where, Delays())
            )
    print(f"took {time.perf_counter() - began:.0f} s")
    lags.sort()
    print("lag ms", [round(lags[int(len(lags) * q)] * 1e3, 1) for q in (0.5, 0.9, 0.95, 0.99, 0.999)])
    for strategy in options.strategies.split(","):
        turns = [turn for call in calls if call.strategy == strategy for turn in call.turns]
        times = sorted(turn.reply for turn in turns)
        print(
            f"{strategy:12} n={len(turns)} p50 {times[len(times) // 2] * 1e3:.0f} p95 {times[int(len(times) * 0.95)] * 1e3:.0f}"
            f" needle {sum(t.found for t in turns) / len(turns):.3f} llm {sum(t.requests for t in turns) / len(turns):.2f}"
            f" search {sum(t.searches for t in turns) / len(turns):.2f}",
            [
                (round(c.ready or 0, 2), round(c.complete or 0, 2), round(c.preload or 0, 2))
                for c in calls
                if c.strategy == strategy
            ],
        )


if __name__ == "__main__":
    main()
