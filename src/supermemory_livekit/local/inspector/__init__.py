"""The inspector: a page at `/` that shows what is stored, what recall would return and why, and recalls as they happen.

The page is static, needs no build step, and holds nothing: it asks the routes under `/inspector/api/` with the key that
a person enters. `inspector_routes` gives everything as extra routes of the service's app.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from supermemory_livekit.local.engine import Engine

from .api import api_routes
from .pages import page_routes

__all__ = ["inspector_routes"]


def inspector_routes(engine: Engine) -> Sequence[BaseRoute]:
    """For `extra_routes` of `create_app` and `serve`. From now on the engine keeps its last searches in memory."""
    engine.recent.keep()
    return [*page_routes(), *api_routes(engine)]
