"""Supermemory's v5 API: the same things as v3/v4, named by namespace and id. A namespace is a container tag.

`schemas.py` is what clients may send, `shapes.py` what they get, `views.py` and `routes.py` the way between.
"""

from __future__ import annotations

from .routes import ENDPOINTS

__all__ = ["ENDPOINTS"]
