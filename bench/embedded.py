"""What the README says of the embedded service: how long recall takes, and when a call becomes recallable.

    python bench/embedded.py [--turns 200] [--calls 40]

A caller with `--calls` stored calls asks `--turns` questions, in process (`base_url="local"`) and over loopback HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from pathlib import Path

import uvicorn

from supermemory_livekit.local.app import create_app
from supermemory_livekit.local.engine import Engine
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.store import Dreaming
from supermemory_livekit.transcript import Turn, next_chunk

TAG = "caller"
THINGS = ("bicycle", "piano", "garden", "kayak", "camera", "stove", "guitar", "tent", "boat", "clock")
PLACES = ("Porto", "Graz", "Lyon", "Ghent", "Turin", "Malmo", "Bergen", "Cork", "Utrecht", "Gdansk")


def call_text(number: int, now: datetime) -> str:
    thing, place = THINGS[number % len(THINGS)], PLACES[(number * 7) % len(PLACES)]
    turns = [
        Turn("caller", f"I bought a {thing} in {place} last year, my number {number}.", now, 0),
        Turn("agent", "That sounds nice.", now, 1),
    ]
    return "\n".join(line.text for line in next_chunk(turns, after=None))


async def store_calls(store: SDKStore, calls: int) -> None:
    for number in range(calls):
        now = datetime.now(timezone.utc)
        text = call_text(number, now)
        await store.append(TAG, f"call-{number}", text, dreaming="instant", at=now, timeout=30)
    known, before = -1, -2
    while known != before:  # until a second brings no more facts
        await asyncio.sleep(1)
        profile = await store.profile(TAG, timeout=30)
        known, before = len(profile.static) + len(profile.dynamic), known


async def recall_times(store: SDKStore, turns: int) -> list[float]:
    """Milliseconds of what a reply waits for: profile and search, side by side."""
    choose = random.Random(7)
    taken: list[float] = []
    for _ in range(turns):
        question = f"Where did I get the {choose.choice(THINGS)}, number {choose.randrange(1000)}?"
        started = time.perf_counter()
        await asyncio.gather(
            store.profile(TAG, timeout=10),
            store.search(TAG, question, limit=10, threshold=0.1, mode="hybrid", timeout=10),
        )
        taken.append((time.perf_counter() - started) * 1000)
    return taken


async def recallable_after(store: SDKStore, number: int, dreaming: Dreaming) -> tuple[float, float]:
    """Milliseconds from the acknowledged write until its words, and until a fact of it, are found."""
    now = datetime.now(timezone.utc)
    word = f"zebrafinch{number}"
    (line,) = next_chunk([Turn("caller", f"My password hint is {word}.", now, 0)], after=None)
    await store.append(f"new-{number}", "call", line.text, dreaming=dreaming, at=now, timeout=30)
    started = time.perf_counter()
    raw = fact = 0.0
    while not fact and time.perf_counter() - started < 20:
        hits = await store.search(f"new-{number}", word, limit=10, threshold=0.1, mode="hybrid", timeout=10)
        elapsed = (time.perf_counter() - started) * 1000
        if hits and not raw:
            raw = elapsed
        if any(hit.memory_id for hit in hits):
            fact = elapsed
        if dreaming == "dynamic" and raw:
            break
        await asyncio.sleep(0.005)
    return raw, fact


@asynccontextmanager
async def over_http(path: Path) -> AsyncGenerator[SDKStore]:
    config = uvicorn.Config(
        create_app(Engine(path), api_key="key"), port=0, log_level="error", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    store = SDKStore(make_client(api_key="key", base_url=f"http://127.0.0.1:{port}"))
    try:
        yield store
    finally:
        await store.aclose()
        server.should_exit = True
        await task


async def main(turns: int, calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        store = SDKStore(make_client(base_url=f"local:{path}"))
        await store_calls(store, calls)
        await recall_times(store, 5)  # the model is loaded with the first question
        inside = sorted(await recall_times(store, turns))
        waits = [await recallable_after(store, number, "instant") for number in range(20)]
        dynamic = [await recallable_after(store, 100 + number, "dynamic") for number in range(5)]
        await store.aclose()
        async with over_http(path) as remote:
            await recall_times(remote, 5)
            outside = sorted(await recall_times(remote, turns))
    figures = {
        "recall_p50_ms": statistics.median(inside),
        "recall_p95_ms": inside[int(len(inside) * 0.95)],
        "recall_http_p50_ms": statistics.median(outside),
        "recall_http_p95_ms": outside[int(len(outside) * 0.95)],
        "raw_text_found_ms": statistics.median(raw for raw, _ in waits + dynamic),
        "instant_fact_found_ms": statistics.median(fact for _, fact in waits),
    }
    print(" ".join([f"calls={calls}", f"turns={turns}", *(f"{k}={v:.1f}" for k, v in figures.items())]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--calls", type=int, default=40)
    options = parser.parse_args()
    asyncio.run(main(options.turns, options.calls))
