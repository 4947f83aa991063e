"""Memory for LiveKit voice agents, kept in Supermemory: a caller who rings back is remembered."""

from ._version import __version__

__all__ = ["__version__"]
