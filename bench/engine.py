"""How the embedded service does with many callers, beside stores that people pick instead.

    python bench/engine.py [--memories 100000] [--callers 500] [--questions 500] [--adds 200] [--postgres ADDRESS]

The memories are loaded with vectors made before, the same for every store; `load_per_s` is that. From then on every
question is embedded by the real model within the time measured. The service is asked in process, and as
`supermemory-livekit serve` over HTTP; questions come from callers drawn at random. `first` are the questions with
which a caller's index is built, one per caller; `backlog` are questions while calls wait to become memories. The other
stores run one after another, in a process each, and answer from vectors alone.

A store that is not filled in three minutes is measured with what it holds by then (`memories`), which flatters it.
`cpu` is the processor's time of one question, client and model included: it holds on a busy machine, too.
`nearest_found` is how often the nearest vector of that caller was among the ten hits: a store that guesses, or a
service that weighs words too, need not show it. One line of `name=value` comes last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from engine_data import Data, Precomputed, caller_name, make_data
from supermemory_livekit.local import Engine, open_local

SERVER = """
import json, sys
from supermemory_livekit.local.server import serve
serve(
    port=0,
    path=sys.argv[1],
    rate=None,
    announce=lambda at: print(json.dumps([at.url, at.api_key]), flush=True),
)
"""
STORES = ("chroma", "lancedb", "mem0")
BACKLOG_CALLS = 150
Figures = dict[str, float]


def percentiles(name: str, taken: Sequence[float]) -> Figures:
    ordered = sorted(taken)
    return {f"{name}_p50_ms": statistics.median(ordered), f"{name}_p95_ms": ordered[int(len(ordered) * 0.95)]}


def search_body(caller: int, question: str) -> dict[str, Any]:
    """As the plugin asks, with its defaults."""
    return {
        "containerTag": caller_name(caller),
        "q": question,
        "limit": 10,
        "threshold": 0.1,
        "searchMode": "hybrid",
    }


async def fill(client: httpx.AsyncClient, data: Data) -> None:
    for caller, numbers in enumerate(data.callers):
        for at in range(0, len(numbers), 100):
            memories = [{"content": data.texts[number]} for number in numbers[at : at + 100]]
            answer = await client.post(
                "/v4/memories", json={"containerTag": caller_name(caller), "memories": memories}
            )
            answer.raise_for_status()


async def ask(
    client: httpx.AsyncClient, asked: Sequence[tuple[int, str]]
) -> tuple[list[float], list[list[str]]]:
    """Milliseconds and texts of each answer."""
    taken: list[float] = []
    texts: list[list[str]] = []
    for caller, question in asked:
        started = time.perf_counter()
        answer = await client.post("/v4/search", json=search_body(caller, question))
        taken.append((time.perf_counter() - started) * 1000)
        answer.raise_for_status()
        texts.append([hit.get("memory") or hit["chunk"] for hit in answer.json()["results"]])
    return taken, texts


async def in_process(location: str, data: Data, questions: int) -> Figures:
    model = Precomputed(data)
    engine = Engine(location, load=lambda: model)
    async with open_local(engine=engine) as client:
        started = time.perf_counter()
        await fill(client, data)
        acknowledged = time.perf_counter() - started
        assert await engine.settled(3600)
        loaded = time.perf_counter() - started
        total = sum(map(len, data.callers))
        await ask(client, data.questions(20, 4))
        each = [
            (caller, question) for caller, (_, question) in enumerate(data.questions(len(data.callers), 6))
        ]
        worked = [time.process_time()]
        first, _ = await ask(client, each)
        worked.append(time.process_time())
        asked = data.questions(questions, 5)
        taken, texts = await ask(client, asked)
        worked.append(time.process_time())
        nearest = 0
        for (caller, question), found in zip(asked, texts, strict=True):
            vector = model.embed([question])[0]
            best = max(data.callers[caller], key=lambda number: float(data.vectors[number] @ vector))
            nearest += data.texts[best] in found
    return {
        "acknowledged_per_s": total / acknowledged,
        "load_per_s": total / loaded,
        **percentiles("first", first),
        **percentiles("recall", taken),
        "first_cpu_ms": (worked[1] - worked[0]) * 1000 / len(each),
        "recall_cpu_ms": (worked[2] - worked[1]) * 1000 / len(asked),
        "nearest_found": nearest / questions,
    }


@contextmanager
def serving(location: str) -> Iterator[tuple[str, str, int]]:
    """Address, key and process of the service on this database."""
    environment = {
        **os.environ,
        "SUPERMEMORY_LOCAL_PATH": str(Path(tempfile.gettempdir()) / "engine-bench.db"),
    }
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, location], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            url, key = json.loads(process.stdout.readline())
            yield url, key, process.pid
        finally:
            process.terminate()


async def over_http(location: str, data: Data, questions: int, adds: int) -> Figures:
    started = time.perf_counter()
    with serving(location) as (url, key, pid):
        listening = time.perf_counter() - started
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False
        ) as client:
            await ask(client, data.questions(1, 3))
            answered = time.perf_counter() - started
            idle = resident_mb(pid)
            each = [
                (caller, question)
                for caller, (_, question) in enumerate(data.questions(len(data.callers), 6))
            ]
            first, _ = await ask(client, each)
            taken, _ = await ask(client, data.questions(questions, 5))
            full = resident_mb(pid)
            started = time.perf_counter()
            for number in range(adds):
                body = {
                    "containerTag": caller_name(number % len(data.callers)),
                    "memories": [{"content": f"{data.texts[number]} Number {number}."}],
                }
                (await client.post("/v4/memories", json=body)).raise_for_status()
            added = time.perf_counter() - started
            behind = await during_backlog(client, data)
    return {
        "start_ms": listening * 1000,
        "first_answer_ms": answered * 1000,
        **percentiles("http_first", first),
        **percentiles("http_recall", taken),
        "http_adds_per_s": adds / added,
        **percentiles("http_backlog", behind),
        "rss_start_mb": idle,
        "rss_mb": full,
    }


async def during_backlog(client: httpx.AsyncClient, data: Data) -> list[float]:
    """Questions while so many calls, each of 20 turns, become memories."""
    for number in range(BACKLOG_CALLS):
        lines = [
            f"[2026-11-01T10:00:{turn:02}.000Z] Caller: I {data.texts[(number * 20 + turn) % len(data.texts)].lower()}"
            for turn in range(20)
        ]
        body = {
            "containerTag": f"busy-{number % 50}",
            "customId": f"lk-{number}",
            "content": "\n".join(lines),
            "dreaming": "instant",
        }
        (await client.post("/v3/documents", json=body)).raise_for_status()
    taken: list[float] = []
    for caller, question in data.questions(200, 7):
        one, _ = await ask(client, [(caller, question)])
        taken += one
        await asyncio.sleep(0.02)  # callers pause; without it the questions would be the load
    return taken


def resident_mb(pid: int) -> float:
    """Memory of a process; nan where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def other_store(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    script = Path(__file__).with_name("engine_stores.py")
    numbers = [options.memories, options.callers, options.questions, options.adds]
    done = subprocess.run(
        [sys.executable, str(script), name, str(folder), *map(str, numbers)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"absent": f"it failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}"}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def shown(name: str, figures: dict[str, Any]) -> None:
    parts = [
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in figures.items()
    ]
    print(f"{name}: {', '.join(parts)}", flush=True)


def main(options: argparse.Namespace) -> None:
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="engine-bench-") as temporary:
        folder = Path(temporary)
        data = make_data(options.memories, options.callers, folder / "vectors.npy")
        places = {"engine": str(folder / "memory.db")}
        if options.postgres:
            places["postgres"] = options.postgres
        for name, location in places.items():
            figures = asyncio.run(in_process(location, data, options.questions))
            figures |= asyncio.run(over_http(location, data, options.questions, options.adds))
            if name == "engine":
                figures["disk_mb"] = sum(file.stat().st_size for file in folder.glob("memory.db*")) / 1e6
            shown(name, figures)
            result |= {f"{name}_{key}" if name != "engine" else key: value for key, value in figures.items()}
        for name in options.stores.split(","):
            figures = other_store(name, folder, options)
            shown(name, figures)
            result |= {f"{name}_{key}": value for key, value in figures.items() if not isinstance(value, str)}
            if "absent" in figures:
                result[f"{name}_absent"] = 1
    sizes = {"memories": options.memories, "callers": options.callers}
    print(
        " ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in {**sizes, **result}.items()
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=500)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--adds", type=int, default=200)
    parser.add_argument("--stores", default=",".join(STORES), help="names separated by commas")
    parser.add_argument("--postgres", help="address of a database to measure too; its schema must be empty")
    main(parser.parse_args())
