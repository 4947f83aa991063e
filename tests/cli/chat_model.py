"""A double of a server that speaks the chat completions API. It is no language model: it plays prepared answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ChatModelDouble", "served"]


class ChatModelDouble:
    """Streams the next of `answers` (words, or a tool name with its arguments) for each streamed request.

    Requests that are not streamed (the embedded service asks for facts so) get an empty answer.
    """

    def __init__(self, *answers: str | tuple[str, dict[str, Any]], status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status
        self.requests: list[dict[str, Any]] = []
        """Bodies of the streamed requests."""
        self.keys: list[str | None] = []
        self.url = ""

    def chunks(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            for word in answer.split(" "):
                yield {"role": "assistant", "content": f"{word} "}
            return
        name, arguments = answer
        text = json.dumps(arguments)
        half = len(text) // 2
        call = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": name, "arguments": text[:half]},
        }
        yield {"role": "assistant", "tool_calls": [call]}
        yield {"tool_calls": [{"index": 0, "function": {"arguments": text[half:]}}]}


@contextmanager
def served(double: ChatModelDouble) -> Iterator[ChatModelDouble]:
    """The double on a free port of the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            double.keys.append(self.headers.get("Authorization"))
            if double.status != 200:
                self._send("application/json", b'{"error": {"message": "refused"}}')
                return
            if not body.get("stream"):
                message = {"role": "assistant", "content": '{"add": [], "forget": []}'}
                whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "double"}
                whole["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
                self._send("application/json", json.dumps(whole).encode())
                return
            double.requests.append(body)
            events = ""
            for delta in double.chunks(body):
                chunk: dict[str, Any] = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "double",
                }
                chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
                events += f"data: {json.dumps(chunk)}\n\n"
            self._send("text/event-stream", f"{events}data: [DONE]\n\n".encode())

        def _send(self, kind: str, body: bytes) -> None:
            self.send_response(double.status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
