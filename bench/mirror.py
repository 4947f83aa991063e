"""What the mirror of a caller's memory costs: how soon it is there, how long a search takes, how much it holds.

    python bench/mirror.py [--sizes 20,100,500,2000] [--searches 200]

The embedded service runs in a process of its own and is asked over HTTP on the loopback address. For each size one
caller has that many memories. Three figures from `start()` on: the newest memories can be searched by their words
(`ready`), all memories are here (`complete`), and they have their vectors (`semantic`), the last one with an empty
embedding cache (`cold`) and with one that knows the texts (`cached`). The model is loaded before, once per
process; `model_load_ms` says what that takes. Searches are timed as a reply waits for them, with the
question's embedding. `stall` is how late the event loop was at
most while a cached mirror loaded. `memory_mb` is what the Python heap and numpy hold more with the mirror than without.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

from supermemory import AsyncSupermemory

from supermemory_livekit.mirror.embedding_cache import EmbeddingCache
from supermemory_livekit.mirror.mirror import Mirror
from supermemory_livekit.retrieval import Embedder, load_embedder
from supermemory_livekit.sdk.client import make_client
from supermemory_livekit.sdk.store import SDKStore

SERVER = """
import json, sys
from supermemory_livekit.local.server import serve
serve(port=0, path=sys.argv[1], announce=lambda at: print(json.dumps([at.url, at.api_key]), flush=True))
"""

WHO = [
    "sister",
    "brother",
    "neighbour",
    "boss",
    "dentist",
    "landlord",
    "teacher",
    "cousin",
    "aunt",
    "daughter",
]
NAMES = ["Ana", "Ben", "Carla", "David", "Elena", "Frank", "Greta", "Hugo", "Ines", "Jonas", "Klara", "Leo"]
PLACES = ["Porto", "Lisbon", "Berlin", "Madrid", "Leeds", "Oslo", "Turin", "Lyon", "Ghent", "Graz", "Cork"]
THINGS = [
    "a bicycle",
    "a piano",
    "a kayak",
    "a red car",
    "an old camera",
    "a violin",
    "a tent",
    "a telescope",
]
FOODS = ["peanuts", "oat milk", "mushrooms", "black coffee", "green tea", "sushi", "rye bread", "goat cheese"]
JOBS = ["nurse", "baker", "pilot", "teacher", "carpenter", "lawyer", "gardener", "plumber", "translator"]
PATTERNS: Sequence[Callable[[random.Random], str]] = (
    lambda r: f"Caller's {r.choice(WHO)} {r.choice(NAMES)} lives in {r.choice(PLACES)}.",
    lambda r: f"Caller bought {r.choice(THINGS)} in {r.choice(PLACES)} for {r.randrange(20, 900)} euros.",
    lambda r: f"Caller does not like {r.choice(FOODS)}, but {r.choice(NAMES)} does.",
    lambda r: f"Caller's {r.choice(WHO)} works as a {r.choice(JOBS)} in {r.choice(PLACES)}.",
    lambda r: f"Caller meets {r.choice(NAMES)} on {r.randrange(1, 28)} March at {r.randrange(8, 18)}.",
    lambda r: f"Caller's booking number for {r.choice(PLACES)} is {r.randrange(10_000, 99_999)}.",
)
QUESTIONS: Sequence[Callable[[random.Random], str]] = (
    lambda r: f"where does my {r.choice(WHO)} live again",
    lambda r: f"what was my booking number for {r.choice(PLACES)}",
    lambda r: f"how much did I pay for {r.choice(THINGS)}",
    lambda r: f"when do I meet {r.choice(NAMES)}",
    lambda r: f"could you remind me what my {r.choice(WHO)} does for work",
)


async def fill(client: AsyncSupermemory, tag: str, size: int, seed: int) -> None:
    made = random.Random(seed)
    facts = [f"{made.choice(PATTERNS)(made)[:-1]} ({n})." for n in range(size)]
    for start in range(0, size, 100):
        memories = [{"content": fact, "isStatic": made.random() < 0.1} for fact in facts[start : start + 100]]
        await client.post("/v4/memories", body={"containerTag": tag, "memories": memories}, cast_to=object)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.perf_counter() + seconds
    while not condition():
        if time.perf_counter() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.001)


def loader(embedder: Embedder | None) -> Callable[[], Embedder | None]:
    return lambda: embedder


async def opened(
    store: SDKStore,
    tag: str,
    embedder: Embedder | None,
    cache: EmbeddingCache,
    times: dict[str, float],
    run: str,
) -> Mirror:
    mirror = Mirror(store, tag, load_embedder=loader(embedder), cache=cache)
    began = time.perf_counter()

    def note(name: str) -> None:
        times[name] = 1_000 * (time.perf_counter() - began)

    mirror.start()
    await until(lambda: mirror.ready)
    note(f"{run}_ready")
    await until(lambda: mirror.complete)
    note(f"{run}_complete")
    if embedder is not None:
        await until(lambda: mirror.semantic)
        note(f"{run}_semantic")
    return mirror


async def longest_stall(during: asyncio.Task[Mirror]) -> float:
    """Milliseconds that the event loop was late at most: what the audio of the call would notice."""
    worst = 0.0
    while not during.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - began - 0.001)
    return 1_000 * worst


async def searched(mirror: Mirror, count: int) -> tuple[float, float]:
    """Median and 95th percentile, milliseconds."""
    asked = random.Random(1)
    times: list[float] = []
    for _ in range(count):
        question = asked.choice(QUESTIONS)(asked)
        began = time.perf_counter()
        await mirror.search(question, limit=10, threshold=0.1)
        times.append(1_000 * (time.perf_counter() - began))
        await asyncio.sleep(0.002)
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.95)]


async def held(store: SDKStore, tag: str, embedder: Embedder | None, cache: EmbeddingCache) -> float:
    """Megabytes."""
    gc.collect()
    tracemalloc.start()
    try:
        mirror = await opened(store, tag, embedder, cache, {}, "")
        await mirror.search("where does my sister live", limit=10, threshold=0.1)
        gc.collect()
        whole, _ = tracemalloc.get_traced_memory()
        await mirror.aclose()
        del mirror
        gc.collect()
        rest, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (whole - rest) / 1e6


async def measured(url: str, key: str, sizes: Sequence[int], searches: int, folder: Path) -> dict[str, float]:
    client = make_client(api_key=key, base_url=url)
    store = SDKStore(client)
    began = time.perf_counter()
    embedder = load_embedder()
    values = {"model_load_ms": 1_000 * (time.perf_counter() - began)}
    try:
        for size in sizes:
            tag = f"caller-{size}"
            await fill(client, tag, size, seed=size)
            await asyncio.sleep(1 + size / 300)  # the service embeds them too, on the same cores
            cache = EmbeddingCache(folder / f"{size}.db")
            times: dict[str, float] = {}
            cold = await opened(store, tag, embedder, cache, times, "cold")
            await cold.aclose()
            opening = asyncio.ensure_future(opened(store, tag, embedder, cache, times, "cached"))
            stall = await longest_stall(opening)
            cached = await opening
            p50, p95 = await searched(cached, searches)
            await cached.aclose()
            megabytes = await held(store, tag, embedder, cache)
            del times["cached_ready"], times["cached_complete"]
            shown = {
                name.removeprefix("cold_") if "semantic" not in name else name: ms
                for name, ms in times.items()
            }
            values |= {f"{name}_{size}_ms": ms for name, ms in shown.items()}
            values |= {
                f"search_{size}_p50_ms": p50,
                f"search_{size}_p95_ms": p95,
                f"memory_{size}_mb": megabytes,
                f"stall_{size}_ms": stall,
            }
            print(
                f"{size:6} memories  "
                + "  ".join(f"{name} {ms:7.0f} ms" for name, ms in shown.items())
                + f"  search p50 {p50:.1f} p95 {p95:.1f} ms  {megabytes:.1f} MB  stall {stall:.0f} ms"
            )
    finally:
        await store.aclose()
    return values


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What the mirror of a caller's memory costs.")
    parser.add_argument("--sizes", default="20,100,500,2000", help="numbers of memories, separated by commas")
    parser.add_argument("--searches", type=int, default=200, help="searches per size")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder / "memory.db")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url, key = json.loads(server.stdout.readline())
            values = asyncio.run(measured(url, key, sizes, options.searches, folder))
        finally:
            server.terminate()
            server.wait(30)
    print(" ".join(f"{name}={value:.1f}" for name, value in values.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
