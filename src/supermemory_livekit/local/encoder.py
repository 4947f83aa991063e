"""The embedding model, loaded in the background while the first requests are answered already."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder, load_embedder

from .traffic import Traffic

__all__ = ["Encoder"]

_STEP = 2
"""Texts embedded between two looks at the traffic: some 5 ms of work."""


class Encoder:
    """An `Embedder` that may not be there yet, or never."""

    def __init__(
        self,
        load: Callable[[], Embedder | None] = load_embedder,
        *,
        traffic: Traffic | None = None,
        patience: float = 1.0,
    ) -> None:
        """`traffic`: what `background` gives way to. `patience`: seconds a query waits for a model that is being
        loaded, before full text has to do.
        """
        self._load = load
        self._traffic = traffic or Traffic()
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

    def background(self) -> Embedder | None:
        """The model for work that nobody waits for; None when there is none (yet)."""
        return None if self._embedder is None else _Background(self._embedder, self._traffic)

    def query(self, text: str) -> tuple[Embedder, NDArray[np.float32]] | None:
        """The vector of a question and the model that made it; None when there is no model (yet)."""
        self._loaded.wait(self._patience)
        embedder = self._embedder
        return None if embedder is None else (embedder, embedder.embed([text])[0])


class _Background:
    """An embedder that lets requests pass every few texts."""

    def __init__(self, embedder: Embedder, traffic: Traffic) -> None:
        self._embedder = embedder
        self._traffic = traffic
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _STEP):
            self._traffic.give_way()
            part = texts[start : start + _STEP]
            rows[start : start + len(part)] = self._embedder.embed(part)
        return rows

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._embedder.similarity(cosines)
