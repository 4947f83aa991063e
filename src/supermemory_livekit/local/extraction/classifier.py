"""Tells whether a sentence says something worth keeping about the person who says it.

A logistic regression over sentence vectors and the features in `features.py`, fitted by `bench/train_facts.py` to
sentences written for this project.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder

from .features import COUNT, features_of

__all__ = ["Classifier", "Odds", "load_classifier"]


@dataclass(frozen=True)
class Odds:
    """Probabilities from 0 to 1 that add up to 1."""

    nothing: float
    durable: float
    """Stays true: a name, an allergy, a home."""
    passing: float
    """An event, an order, a plan."""


class Classifier:
    """Safe to call from any thread."""

    def __init__(self, embedder: Embedder, weights: NDArray[np.float32]) -> None:
        self._embedder = embedder
        self._weights = weights

    def judge(self, texts: Sequence[str]) -> list[Odds]:
        """One verdict per text. Takes about 2 ms a sentence."""
        if not texts:
            return []
        # numpy's stubs for its operators read as unknown under Python 3.10.
        weights: Any = self._weights
        inputs = np.hstack([self._embedder.embed(texts), features_of(texts)])
        scores: Any = np.matmul(inputs, weights[:, :-1].T) + weights[:, -1]
        powers: Any = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds: Any = powers / powers.sum(axis=1, keepdims=True)
        return [Odds(float(row[0]), float(row[1]), float(row[2])) for row in odds]


def load_classifier(embedder: Embedder | None) -> Classifier | None:
    """None without an encoder, or with one that the weights were not fitted to."""
    if embedder is None:
        return None
    stored = json.loads(
        resources.files(__package__ or "").joinpath("weights.json").read_text(encoding="utf-8")
    )
    if stored["model_id"] != embedder.model_id:
        return None
    flat = np.frombuffer(base64.b64decode(stored["weights"]), dtype="<f2").astype(np.float32)
    return Classifier(embedder, flat.reshape(stored["classes"], embedder.dimensions + COUNT + 1))
