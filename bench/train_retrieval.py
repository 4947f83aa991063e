"""Fits what speaks for a turn (`retrieval/conversation.py`), on the LoCoMo conversations.

    python bench/train_retrieval.py DATA

The model is linear: it gives each turn of a conversation a score, and the share of probability that falls on
the evidence of a question (softmax over all turns) is made as large as it can be. Prints, for each conversation,
the recall of its evidence in the hits of searches for 5, 10 and 20, and in the first 2,000 characters of the search
for 10 (as `bench/retrieval.py` has it, without the service), with weights that were fitted on the other
conversations; then the weights fitted on all of them, and where scores lie. `--without` leaves features out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from locomo import Conversation, read_all
from supermemory_livekit.retrieval import Place, in_context, load_embedder, turns
from supermemory_livekit.retrieval.conversation import FEATURES, Conversations
from supermemory_livekit.retrieval.excerpts import excerpts
from supermemory_livekit.retrieval.fulltext import FullText

_CUTS = (5, 10, 20)
_DEFAULT = 10
_BUDGET = 2_000
_RIDGE = 0.01
_STEPS = 30
_HALVINGS = 20
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """The questions of one conversation."""

    name: str
    features: Array
    """Shape (questions, turns, features)."""
    evidence: NDArray[np.bool_]
    """Shape (questions, turns)."""
    lines: list[str]
    conversations: Conversations


def judged(conversation: Conversation) -> Judged:
    fulltext, conversations = FullText(), Conversations()
    size = len(conversation.turns)
    fulltext.grow(size)
    conversations.grow(size)
    embedded: list[str] = []
    lines: list[str] = []
    for number, session in enumerate(conversation.sessions):
        content = "\n".join(turn.line for turn in session)
        before = ""
        for start, stop in turns(content):
            text = content[start:stop]
            fulltext.put(len(embedded), text)
            conversations.put(len(embedded), text, Place(str(number), start, stop))
            embedded.append(in_context(text, before))
            before = text
            lines.append(text)
    if len(embedded) != size:
        raise SystemExit(f"{conversation.name}: a turn is longer than a piece of text may be")
    embedder = load_embedder()
    if embedder is None:
        raise SystemExit("no semantic model is installed")
    vectors = embedder.embed(embedded)
    features: list[Array] = []
    evidence = np.zeros((len(conversation.questions), size), dtype=np.bool_)
    for n, question in enumerate(conversation.questions):
        meaning = embedder.similarity(vectors @ embedder.embed([question.text])[0])
        columns = conversations.features(question.text, fulltext, meaning)
        features.append(np.stack(columns, axis=1)[:-1].astype(np.float64))
        evidence[n, list(question.evidence)] = True
    return Judged(conversation.name, np.stack(features), evidence, lines, conversations)


def fit(examples: Sequence[Judged]) -> Array:
    """Weights by Newton's method with halved steps; the problem is convex."""
    flat = np.concatenate([one.features.reshape(-1, len(FEATURES)) for one in examples])
    scale = flat.std(axis=0) + 1e-9
    scaled = [replace(one, features=one.features / scale) for one in examples]
    weights = np.zeros(len(FEATURES))
    loss, gradient, curvature = _loss(scaled, weights)
    for _ in range(_STEPS):
        step = np.linalg.solve(curvature, gradient)
        for _ in range(_HALVINGS):
            after = _loss(scaled, weights - step)
            if after[0] <= loss:
                break
            step /= 2
        weights = weights - step
        loss, gradient, curvature = after
        if np.abs(step).max() < 1e-5:
            break
    result: Array = weights / scale
    return result


def _loss(examples: Sequence[Judged], weights: Array) -> tuple[float, Array, Array]:
    """Mean surprise at the evidence, with its gradient and curvature."""
    loss, gradient, curvature = 0.0, np.zeros_like(weights), np.zeros((len(weights), len(weights)))
    for one in examples:
        score = one.features @ weights
        score -= score.max(axis=1, keepdims=True)
        likely = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        wanted = one.evidence / one.evidence.sum(axis=1, keepdims=True)
        loss -= float((wanted * np.log(likely + 1e-12)).sum())
        gradient += np.einsum("qt,qtf->f", likely - wanted, one.features)
        means = np.einsum("qt,qtf->qf", likely, one.features)
        weighted = (one.features * likely[:, :, None]).reshape(-1, len(weights))
        curvature += weighted.T @ one.features.reshape(-1, len(weights)) - means.T @ means
    questions = sum(len(one.evidence) for one in examples)
    return (
        loss / questions + _RIDGE * float(weights @ weights),
        gradient / questions + 2 * _RIDGE * weights,
        curvature / questions + 2 * _RIDGE * np.eye(len(weights)),
    )


def recall(one: Judged, weights: Array) -> Array:
    """For each question its recall in 5, 10 and 20 hits and in the budget: shape (questions, 4)."""
    rows: list[list[float]] = []
    for score, evidence in zip(one.features @ weights, one.evidence, strict=True):
        ranked: list[int] = np.argsort(-score, kind="stable").tolist()
        row: list[float] = []
        for cut in _CUTS:
            found = [slot for hit in excerpts(ranked, one.conversations, cut) for slot in hit.slots]
            row.append(float(evidence[found].sum() / evidence.sum()))
            if cut == _DEFAULT:
                ends = np.cumsum([len(one.lines[slot]) + 1 for slot in found]) - 1
                within = [slot for slot, end in zip(found, ends, strict=True) if end <= _BUDGET]
                in_budget = float(evidence[within].sum() / evidence.sum())
        rows.append([*row, in_budget])
    return np.array(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit the weights of what speaks for a turn.")
    parser.add_argument("data", type=Path, help="folder of LoCoMo conversations, one JSON file each")
    parser.add_argument("--without", nargs="*", choices=FEATURES, default=[], help="features to leave out")
    options = parser.parse_args(arguments)
    examples = [judged(conversation) for conversation in read_all(options.data)]
    for one in examples:
        one.features[:, :, [FEATURES.index(name) for name in options.without]] = 0
    if not examples:
        print("train: no LoCoMo conversations in the folder given", file=sys.stderr)
        return 2
    recalls: list[Array] = []
    print(f"recall   at {_CUTS}, in {_BUDGET} characters")
    for held in examples:
        others = [one for one in examples if one is not held]
        weights = fit(others) if others else fit(examples)
        recalls.append(recall(held, weights))
        print(f"{held.name:8}", recalls[-1].mean(axis=0).round(3))
    print("all     ", np.concatenate(recalls).mean(axis=0).round(3))
    weights = fit(examples)
    for name, weight in zip(FEATURES, weights, strict=True):
        print(f"{name:16} {weight:7.3f}")
    scores = [one.features @ weights for one in examples]
    cuts = (1, 10, 25, 50, 75, 90, 99)
    evidence = np.concatenate([s[one.evidence] for s, one in zip(scores, examples, strict=True)])
    best = np.concatenate([s.max(axis=1) for s in scores])
    print("percentiles     ", *cuts)
    print("evidence        ", *np.percentile(evidence, cuts).round(2))
    print("best turn       ", *np.percentile(best, cuts).round(2))
    print("any turn        ", *np.percentile(np.concatenate([s.ravel() for s in scores]), cuts).round(2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
