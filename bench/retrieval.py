"""How much of what a question needs is among the first hits, on the LoCoMo conversations.

    python bench/retrieval.py DATA [--speed] [--facts tests/retrieval/paraphrases.json]

DATA is a folder of LoCoMo conversations, one JSON file each (Maharana et al., ACL 2024; CC BY-NC 4.0, so
not part of this repository). Evidence recall at k: the share of a question's evidence turns that are in
the first k hits, averaged over questions; category 5 has no answer and is left out. Compared in the same
run:

    bm25_turn     lone turns, full text bm25_window   windows of three turns, every second turn a centre,
    full text; all three turns count as returned index_window  the same windows with the semantic model
    blended in, as the embedded service searches calls

and, since a window is longer than a turn, recall within the first 2,000 characters of returned text.
`--facts` adds how often a short fact is the first hit, and among the first three, when it is asked for in
other words: by full text, and by the index. `--speed` adds the time of a search at 200, 2,000 and 20,000
passages, and of one embedding.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder, Index, Passage, load_embedder

CUTS = (5, 10, 20)
BUDGET = 2_000  # characters
ADVERSARIAL = 5


@dataclass(frozen=True)
class Piece:
    """What can be returned: its text, and the turns in it."""

    text: str
    turns: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    turns: list[Piece]
    windows: list[Piece]
    questions: list[tuple[str, frozenset[str]]]


def read(path: Path) -> Conversation:
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    turns: list[Piece] = []
    windows: list[Piece] = []
    numbers = sorted(int(match[1]) for name in raw if (match := re.fullmatch(r"session_(\d+)", name)))
    for number in numbers:
        stamp = _stamp(str(raw.get(f"session_{number}_date_time", "")))
        session = [
            Piece(f"{stamp}{turn['speaker']}: {turn['text']}", frozenset([str(turn["dia_id"])]))
            for turn in raw[f"session_{number}"]
        ]
        turns.extend(session)
        for centre in range(1, max(len(session), 2), 2):
            around = session[max(0, centre - 1) : centre + 2]
            windows.append(
                Piece(
                    "\n".join(one.text for one in around),
                    frozenset[str]().union(*(one.turns for one in around)),
                )
            )
    questions = [
        (str(one["question"]), frozenset(map(str, one["evidence"])))
        for one in raw["qa"]
        if one.get("category") != ADVERSARIAL and one.get("evidence")
    ]
    return Conversation(turns, windows, questions)


def _stamp(when: str) -> str:
    try:
        return f"[{datetime.strptime(when, '%I:%M %p on %d %B, %Y').isoformat()}Z] "
    except ValueError:
        return ""


def recall(
    conversations: Sequence[Conversation],
    pieces: Callable[[Conversation], list[Piece]],
    embedder: Embedder | None,
) -> dict[str, float]:
    """Evidence recall in percent, by cut."""
    shares: dict[str, list[float]] = {}
    for conversation in conversations:
        choice = pieces(conversation)
        vectors = embedder.embed([piece.text for piece in choice]) if embedder else None
        index = Index()
        index.add(
            Passage(str(n), piece.text, "chunk", None, None if vectors is None else vectors[n])
            for n, piece in enumerate(choice)
        )
        for question, evidence in conversation.questions:
            vector = embedder.embed([question])[0] if embedder else None
            hits = index.search(question, query_vector=vector, limit=max(CUTS), threshold=0)
            found = [choice[int(hit.key)] for hit in hits]
            for cut in CUTS:
                shares.setdefault(str(cut), []).append(_share(found[:cut], evidence))
            shares.setdefault("2000c", []).append(_share(_within_budget(found), evidence))
    return {cut: 100 * statistics.fmean(values) for cut, values in shares.items()}


def _share(found: Sequence[Piece], evidence: frozenset[str]) -> float:
    returned = frozenset[str]().union(*(piece.turns for piece in found))
    return len(evidence & returned) / len(evidence)


def _within_budget(found: Sequence[Piece]) -> list[Piece]:
    kept: list[Piece] = []
    used = 0
    for piece in found:
        used += len(piece.text)
        if used > BUDGET:
            break
        kept.append(piece)
    return kept


def facts(path: Path, embedder: Embedder | None) -> Iterator[tuple[str, float]]:
    """Percent of the questions of a paraphrase file whose fact is first, and among the first three."""
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known: dict[str, str] = raw["facts"]
    asked: list[list[str]] = raw["questions"]
    vectors = embedder.embed(list(known.values())) if embedder else None
    index = Index()
    index.add(
        Passage(key, text, "memory", None, None if vectors is None else vectors[n])
        for n, (key, text) in enumerate(known.items())
    )
    for name, encoder in (("fulltext", None), ("index", embedder)):
        places: list[int] = []
        for question, accepted in asked:
            vector = encoder.embed([question])[0] if encoder else None
            hits = index.search(question, query_vector=vector, limit=3, threshold=0)
            right = [n for n, hit in enumerate(hits) if hit.key in accepted.split()]
            places.append(right[0] if right else len(known))
        yield f"facts_{name}_first", 100 * statistics.fmean(place == 0 for place in places)
        yield f"facts_{name}_in_3", 100 * statistics.fmean(place < 3 for place in places)


def speed(embedder: Embedder | None) -> Iterator[tuple[str, float]]:
    """Milliseconds: median and 95th percentile of a search with the query vector given, and of one embedding."""
    random = np.random.default_rng(7)
    vocabulary = [f"word{n}" for n in range(4_000)]
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    weights /= weights.sum()
    for size in (200, 2_000, 20_000):
        index = Index()
        vectors = random.standard_normal((size, 512)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        texts = [" ".join(random.choice(vocabulary, 40, p=weights)) for _ in range(size)]
        began = time.perf_counter()
        index.add(Passage(str(n), texts[n], "chunk", None, vectors[n]) for n in range(size))
        yield f"add_{size}_each", 1_000 * (time.perf_counter() - began) / size
        queries = [" ".join(random.choice(vocabulary, 8, p=weights)) for _ in range(200)]
        vector = vectors[0]

        def search(query: str, index: Index = index, vector: NDArray[np.float32] = vector) -> object:
            return index.search(query, query_vector=vector, limit=10, threshold=0.1)

        yield from _timed(f"search_{size}", search, queries)
    if embedder is not None:
        texts = [f"what was my booking number {n} again" for n in range(200)]
        yield from _timed("embed", lambda text: embedder.embed([text]), texts)


def _timed(name: str, call: Callable[[str], object], texts: Sequence[str]) -> Iterator[tuple[str, float]]:
    times: list[float] = []
    for text in texts:
        began = time.perf_counter()
        call(text)
        times.append(1_000 * (time.perf_counter() - began))
    times.sort()
    yield f"{name}_p50", times[len(times) // 2]
    yield f"{name}_p95", times[int(len(times) * 0.95)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Evidence recall on LoCoMo conversations.")
    parser.add_argument("data", type=Path, help="folder of LoCoMo conversations, one JSON file each")
    parser.add_argument("--facts", type=Path, help="file of facts and questions in other words")
    parser.add_argument("--speed", action="store_true", help="also measure times")
    options = parser.parse_args(arguments)
    files = sorted(options.data.glob("*.json")) if options.data.is_dir() else []
    if not files:
        print("retrieval: no LoCoMo conversations in the folder given; nothing was measured", file=sys.stderr)
        return 2
    embedder = load_embedder()
    if embedder is None:
        print("retrieval: no semantic model installed; index_window is full text only", file=sys.stderr)
    conversations = [read(path) for path in files]
    rows = {
        "bm25_turn": recall(conversations, lambda one: one.turns, None),
        "bm25_window": recall(conversations, lambda one: one.windows, None),
        "index_window": recall(conversations, lambda one: one.windows, embedder),
    }
    values: list[tuple[str, str]] = [
        ("conversations", str(len(conversations))),
        ("questions", str(sum(len(one.questions) for one in conversations))),
        ("turns", str(sum(len(one.turns) for one in conversations))),
    ]
    for name, row in rows.items():
        print(f"{name:14}", "  ".join(f"@{cut} {value:5.1f}" for cut, value in row.items()))
        values += [(f"{name}_at_{cut}", f"{value:.1f}") for cut, value in row.items()]
    if options.facts:
        for name, percent in facts(options.facts, embedder):
            print(f"{name:20} {percent:5.1f}")
            values.append((name, f"{percent:.1f}"))
    if options.speed:
        for name, milliseconds in speed(embedder):
            print(f"{name:20} {milliseconds:.2f} ms")
            values.append((f"{name}_ms", f"{milliseconds:.2f}"))
    print(" ".join(f"{name}={value}" for name, value in values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
