"""Looks at the database before a call is made, so that a wrong path is one line and not a call without memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

from supermemory_livekit.local import Engine, StorageError

__all__ = ["why_unusable"]


def why_unusable(path: Path | None) -> str | None:
    """Why the database cannot be used, and what to do; None when it can. `path` as in `location.locate`."""

    async def look() -> str | None:
        # Without the model and without time for work: it is opened again for the call.
        engine = Engine(path, load=lambda: None, drain=0)
        try:
            await engine.start()
        except StorageError as error:
            return f"{error}. Name another file with --path."
        finally:
            await engine.aclose()
        return None

    return asyncio.run(look())
