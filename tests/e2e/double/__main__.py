"""The double as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from aiohttp import web

from .server import make_app


async def main(address: str) -> None:
    app = make_app(key=os.environ["LIVEKIT_API_KEY"], secret=os.environ["LIVEKIT_API_SECRET"])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    port = runner.addresses[0][1]
    sys.stdout.write(json.dumps({"event": "serving", "url": f"ws://{address}:{port}"}) + "\n")
    sys.stdout.flush()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await lines.read()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
