"""The embedding model, loaded in the background while the first requests are answered already."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder, load_embedder

__all__ = ["Encoder"]


class Encoder:
    """An `Embedder` that may not be there yet, or never."""

    def __init__(self, load: Callable[[], Embedder | None] = load_embedder, *, patience: float = 1.0) -> None:
        """`patience`: seconds a query waits for a model that is being loaded, before full text has to do."""
        self._load = load
        self._patience = patience
        self._loaded = threading.Event()
        self._embedder: Embedder | None = None

    def load(self) -> Embedder | None:
        """Load the model, which takes about a second at first. Blocks."""
        try:
            self._embedder = self._load()
        finally:
            self._loaded.set()
        return self._embedder

    @property
    def embedder(self) -> Embedder | None:
        return self._embedder

    def query(self, text: str) -> tuple[Embedder, NDArray[np.float32]] | None:
        """The vector of a question and the model that made it; None when there is no model (yet)."""
        self._loaded.wait(self._patience)
        embedder = self._embedder
        return None if embedder is None else (embedder, embedder.embed([text])[0])
