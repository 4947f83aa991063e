"""How much of what a question needs a search of stored calls returns, on the LoCoMo conversations.

    python bench/retrieval.py DATA [--roles] [--speed] [--facts tests/retrieval/paraphrases.json]

DATA is a folder of LoCoMo conversations, one JSON file each (Maharana et al., ACL 2024; CC BY-NC 4.0, so not part
of this repository). Each conversation is one caller: its sessions are stored through the official SDK in an
embedded service of its own, one document each, in the lines of our transcripts with who and when. `--roles` writes
Caller and Agent instead of the two names, which the questions go on to use. Each question is asked with the
plugin's default search settings.

Evidence recall at k: the share of a question's evidence turns that stand, as whole lines, in the text of the hits of
a search for k of them, averaged over questions; category 5 has no answer and is left out. Hits are stretches of one
or more turns; so there is also the recall within the first 2,000 characters of what the default search returns, in
which stamps, names and line ends count. Compared in the same run with BM25 of lone turns: FTS5, porter stemmer, stop
words removed, whose text is charged for name and words alone.

`--facts` adds how often a short fact is the first hit, and among the first three, when it is asked for in
other words: by full text, and by the index. `--speed` adds the time of a search at 200, 2,000 and 20,000
passages, half of them turns of calls, and of one embedding.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from supermemory import AsyncSupermemory

from locomo import Conversation, Turn, read_all
from supermemory_livekit import InputParams
from supermemory_livekit.local import Engine, open_local
from supermemory_livekit.retrieval import Embedder, Index, Passage, Place, load_embedder

TAG = "caller"
CUTS = (5, 10, 20)
BUDGET = 2_000  # characters
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between both but
    by can could did do does doing down during each few for from further had has have having he her here hers him his
    how i if in into is it its itself just me more most my myself no nor not now of off on once only or other our ours
    out over own s same she should so some such t than that the their theirs them then there these they this those
    through to too under until up very was we were what when where which while who whom why will with would you your
    """.split()  # noqa: SIM905
)


@dataclass
class Recalls:
    """Shares of the evidence that were found, one per question: at each cut, and in the budget."""

    at: dict[int, list[float]] = field(default_factory=lambda: {cut: [] for cut in CUTS})
    in_budget: list[float] = field(default_factory=list[float])

    def means(self, chosen: Sequence[bool]) -> list[float]:
        rows = [*self.at.values(), self.in_budget]
        return [statistics.fmean(x for x, wanted in zip(row, chosen, strict=True) if wanted) for row in rows]


async def searched(conversation: Conversation, found: Recalls) -> list[float]:
    """Ask the service. Milliseconds of each search with default settings."""
    turns, times = conversation.turns, list[float]()
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder) / "memory.db")
        sdk = AsyncSupermemory(
            api_key="none", base_url="http://local", http_client=open_local(engine=engine), max_retries=0
        )
        for number, session in enumerate(conversation.sessions):
            text = "\n".join(turn.line for turn in session)
            await sdk.add(content=text, container_tag=TAG, custom_id=f"lk-{number}", dreaming="instant")
        while not await engine.settled(60):
            pass
        defaults = InputParams()
        for question in conversation.questions:
            for cut in CUTS:
                began = time.perf_counter()
                answer = await sdk.search.memories(
                    q=question.text,
                    container_tag=TAG,
                    search_mode="hybrid",
                    threshold=defaults.search_threshold,
                    limit=cut,
                )
                took = 1_000 * (time.perf_counter() - began)
                texts = [hit.chunk or hit.memory or "" for hit in answer.results]
                found.at[cut].append(_share(turns, question.evidence, "\n".join(texts)))
                if cut == defaults.search_limit:
                    times.append(took)
                    found.in_budget.append(_share(turns, question.evidence, "\n".join(texts)[:BUDGET]))
        await sdk.close()
    return times


def _share(turns: Sequence[Turn], evidence: frozenset[int], text: str) -> float:
    lines = frozenset(text.split("\n"))
    return sum(turns[position].line in lines for position in evidence) / len(evidence)


def bm25(conversation: Conversation, found: Recalls) -> None:
    """Ask FTS5 for lone turns."""
    turns = [f"{turn.speaker}: {turn.text}" for turn in conversation.turns]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE VIRTUAL TABLE turns USING fts5(text, tokenize='porter unicode61')")
        rows = [(position, " ".join(_words(text))) for position, text in enumerate(turns)]
        database.executemany("INSERT INTO turns (rowid, text) VALUES (?, ?)", rows)
        for question in conversation.questions:
            asked = " OR ".join(f'"{word}"' for word in _words(question.text))
            ranked = database.execute("SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank", (asked,))
            best = [int(row[0]) for row in ranked] if asked else []
            for cut in CUTS:
                found.at[cut].append(len(question.evidence.intersection(best[:cut])) / len(question.evidence))
            used, within = 0, set[int]()
            for position in best:
                used += len(turns[position])
                if used > BUDGET:
                    break
                used += 1
                within.add(position)
            found.in_budget.append(len(question.evidence & within) / len(question.evidence))


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]


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
        index.add(
            Passage(str(n), texts[n], "memory", None, vectors[n])
            if n % 2
            else Passage(
                str(n), f"Caller: {texts[n]}", "chunk", None, vectors[n], Place(str(n // 60), n, n + 1)
            )
            for n in range(size)
        )
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


def _show(name: str, recalls: Recalls, categories: Sequence[int]) -> list[float]:
    for number, category in ((0, "all"), *sorted(CATEGORIES.items())):
        chosen = [not number or one == number for one in categories]
        if any(chosen):
            shown = "  ".join(f"{value:.3f}" for value in recalls.means(chosen))
            print(f"{name:7} {category:12} {sum(chosen):4}   {shown}")
    return recalls.means([True] * len(categories))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Evidence recall on LoCoMo conversations.")
    parser.add_argument("data", type=Path, help="folder of LoCoMo conversations, one JSON file each")
    parser.add_argument("--roles", action="store_true", help="write Caller and Agent instead of names")
    parser.add_argument("--facts", type=Path, help="file of facts and questions in other words")
    parser.add_argument("--speed", action="store_true", help="also measure times of the index alone")
    options = parser.parse_args(arguments)
    conversations = read_all(options.data, roles=options.roles)
    if not conversations:
        print("retrieval: no LoCoMo conversations in the folder given; nothing was measured", file=sys.stderr)
        return 2
    embedder = load_embedder()
    if embedder is None:
        print("retrieval: no semantic model installed; this is full text only", file=sys.stderr)
    if options.facts:
        for name, percent in facts(options.facts, embedder):
            print(f"{name:20} {percent:5.1f} %")
    if options.speed:
        for name, milliseconds in speed(embedder):
            print(f"{name:20} {milliseconds:.2f} ms")
    ours, lexical, times = Recalls(), Recalls(), list[float]()
    for conversation in conversations:
        times += asyncio.run(searched(conversation, ours))
        bm25(conversation, lexical)
    categories = [question.category for one in conversations for question in one.questions]
    turns = sum(len(one.turns) for one in conversations)
    print(f"{len(conversations)} conversations, {turns} turns, {len(categories)} questions")
    print(
        "recall                 asked   "
        + "  ".join(f"{'@' + str(cut):5}" for cut in CUTS)
        + f"  in {BUDGET}"
    )
    _, at_10, _, in_budget = _show("search", ours, categories)
    _, bm25_at_10, _, bm25_in_budget = _show("bm25", lexical, categories)
    times.sort()
    print(
        f"recall_at_10={at_10:.3f} recall_at_2000_chars={in_budget:.3f} bm25_recall_at_10={bm25_at_10:.3f} "
        f"bm25_recall_at_2000_chars={bm25_in_budget:.3f} p50_ms={times[len(times) // 2]:.1f} "
        f"p95_ms={times[int(len(times) * 0.95)]:.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
