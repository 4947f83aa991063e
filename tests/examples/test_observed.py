"""What `examples/observed_agent.py` measures arrives, although its process ends in the way of LiveKit's jobs."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


class Collector(ThreadingHTTPServer):
    """Takes what is sent over OTLP, as a collector does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: dict[str, bytes] = {}
        """By path, everything that was posted to it."""


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received[self.path] = self.server.received.get(self.path, b"") + body
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the standard library
        """Nothing on the test's standard error."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_metrics_and_spans_leave_a_job_process_that_runs_no_exit_handlers(collector: Collector) -> None:
    """A stranger's remark: after a call in a real job process the metrics were empty."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.examples.observed"],
        cwd=REPOSITORY,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"supermemory.recall.duration" in collector.received["/v1/metrics"]
    assert b"supermemory.capture.turns" in collector.received["/v1/metrics"]
    assert b"search_memory supermemory" in collector.received["/v1/traces"]
