"""Draws the panels of the Grafana dashboard from a run: `python bench/dashboard.py`. Needs Prometheus; four minutes.

Calls are made in real time through the official SDK and a slow network to the embedded service; for a while in the
middle the service hangs. A real Prometheus scrapes the metrics of this process, and each query of
docs/grafana/supermemory-livekit.json is asked of it. The picture is drawn here from the answers. It is no screenshot of
Grafana, which is not needed for it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from livekit.agents import ChatContext, llm
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import start_http_server

from dashboard_plot import Panel, Series, plot
from reply_network import Delays, Network, Service, service
from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedCaller, ScriptedLLM, ToolCall

REPOSITORY = Path(__file__).parent.parent
DASHBOARD = REPOSITORY / "docs" / "grafana" / "supermemory-livekit.json"
SCRAPE = 5
"""Seconds between two scrapes; a rate looks at four of them, as `$__rate_interval` does."""

FACTS = ("Likes tea in the morning.", "Has a dog called Rex.", "Lives in Porto.", "Works as a carpenter.")
QUESTIONS = (
    "what do I like to drink in the morning",
    "tell me please what my dog is called",
    "do you know in which town I live",
    "and what is it that I work as",
)


def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
    last = context.items[-1]
    asked = last.type == "message" and "dog" in (last.text_content or "")
    return ToolCall("search_memories", {"query": "dog"}) if asked else "Of course I do."


async def one_call(number: int, place: Service, network: Network, made: random.Random) -> None:
    """A caller with a few facts asks a few questions. Every third call does without the mirror."""
    params = InputParams(mirror=number % 3 != 0)
    client = place.client(network)
    memory = SupermemoryLiveKit(
        client=client, container_tag=f"caller-{number % 12}", session_id=f"call-{number}", params=params
    )
    context = ChatContext()
    await memory.preload(context)
    agent = SupermemoryAgent(memory, chat_ctx=context, instructions="Be kind.")
    async with ScriptedCaller(agent, llm=ScriptedLLM(reply), word_seconds=0.2) as caller:
        memory.attach(caller.session)
        for question in made.sample(QUESTIONS, 3):
            await caller.says(question)
            with contextlib.suppress(asyncio.TimeoutError):
                await caller.hears_reply()
    await memory.aclose()
    await client.close()


async def run(place: Service, seconds: float, at_once: int, seed: int) -> None:
    for number in range(12):
        await place.fill(f"caller-{number}", FACTS)
    network = Network(Delays(0.35, 1.1), f"dashboard-{seed}")
    ends = time.monotonic() + seconds
    numbers = iter(range(1_000_000))

    async def calls(line: int) -> None:
        made = random.Random(f"{seed}-{line}")
        await asyncio.sleep(line)
        while time.monotonic() < ends:
            await one_call(next(numbers), place, network, made)

    async def faults() -> None:
        await asyncio.sleep(0.4 * seconds)
        network.hangs = True
        await asyncio.sleep(0.15 * seconds)
        network.hangs = False

    await asyncio.gather(faults(), *(calls(line) for line in range(at_once)))


@contextmanager
def prometheus(folder: Path, port: int, target: int) -> Generator[str]:
    program = shutil.which("prometheus")
    if program is None:
        sys.exit("this needs the program prometheus")
    config = folder / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": f"{SCRAPE}s"},
                "scrape_configs": [
                    {"job_name": "agents", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
                ],
            }
        )
    )
    process = subprocess.Popen(
        [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
    )
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        process.terminate()
        process.wait(30)


def ask(api: str, expression: str, legend: str, start: float, end: float) -> list[Series]:
    """What Prometheus answers to a query of the dashboard, with the variables filled in as Grafana does."""
    query = expression.replace("$job", ".*").replace("$__rate_interval", f"{4 * SCRAPE}s")
    span = {"query": query, "start": start, "end": end, "step": SCRAPE}
    answer = httpx.get(f"{api}/query_range", params=span, timeout=30).raise_for_status().json()
    series: list[Series] = []
    for result in answer["data"]["result"]:
        name = legend
        for label, value in result["metric"].items():
            name = name.replace("{{" + label + "}}", value)
        points = [(at - start, float(value)) for at, value in result["values"] if value != "NaN"]
        series.append(Series(name, points))
    return series


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--calls", type=int, default=6, help="how many at once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--port", type=int, default=19464, help="of the metrics; Prometheus takes the next one"
    )
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "images" / "dashboard.svg")
    given = parser.parse_args()
    os.environ["SUPERMEMORY_LIVEKIT_CACHE"] = "off"
    resource = Resource.create({"service.name": "agents"})
    metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()], resource=resource))
    server, _ = start_http_server(given.port, addr="127.0.0.1")
    with (
        tempfile.TemporaryDirectory() as name,
        service(Path(name)) as place,
        prometheus(Path(name), given.port + 1, given.port) as api,
    ):
        start = time.time()
        asyncio.run(run(place, given.seconds, given.calls, given.seed))
        time.sleep(2 * SCRAPE)
        end = time.time()
        panels = [
            Panel(
                title=panel["title"],
                kind=panel["type"],
                unit=panel["fieldConfig"]["defaults"]["unit"],
                stacked=panel["fieldConfig"]["defaults"].get("custom", {}).get("stacking", {}).get("mode")
                == "normal",
                place=tuple(panel["gridPos"][side] for side in "xywh"),
                series=[
                    series
                    for target in panel["targets"]
                    for series in ask(api, target["expr"], target["legendFormat"], start, end)
                ],
            )
            for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]
        ]
    server.shutdown()
    plot(panels, given.out, seconds=end - start)
    for panel in panels:
        last = {series.name: round(series.points[-1][1], 4) for series in panel.series if series.points}
        print(json.dumps({"panel": panel.title, "last": last}))


if __name__ == "__main__":
    main()
