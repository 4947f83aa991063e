"""Stores that people pick instead, behind one small interface. Run by `bench/engine.py`, each in a process of its own.

    python bench/engine_stores.py NAME FOLDER MEMORIES CALLERS QUESTIONS ADDS

Each store is used as its documentation has it for many users: one table or collection, the caller as a field, an
index on that field where the store has one. All get the vectors of the same model, and every question is embedded by
that model within the time measured. The last line is a JSON object of figures, or `{"absent": why}`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine_data import Data, caller_name, make_data, real_embedder

_AT_ONCE = 2_000
"""Rows of one call while the data is loaded."""
_LIMIT = 10
_WARM = 5
"""Questions that are not counted: the first ones open files."""
_PATIENCE = 180.0
"""Seconds a store is given to be filled, and to answer: one that needs more is measured with what it holds by then."""


class Store(Protocol):
    package: str

    def load(self, callers: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store many at once; `callers[i]` said `texts[i]`."""
        ...

    def finish_loading(self) -> None:
        """Build what indexes the store has."""
        ...

    def add(self, caller: str, text: str, vector: NDArray[np.float32]) -> None: ...

    def search(self, caller: str, text: str, vector: NDArray[np.float32]) -> list[str]:
        """The `_LIMIT` nearest texts of this caller."""
        ...


class Chroma:
    package = "chromadb"

    def __init__(self, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._collection = client.create_collection("memories", metadata={"hnsw:space": "cosine"})
        self._next = 0

    def load(self, callers: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        ids = [str(self._next + number) for number in range(len(texts))]
        self._next += len(texts)
        self._collection.add(
            ids=ids,
            embeddings=vectors,
            documents=list(texts),
            metadatas=[{"caller": caller} for caller in callers],
        )

    def finish_loading(self) -> None:
        pass

    def add(self, caller: str, text: str, vector: NDArray[np.float32]) -> None:
        self.load([caller], [text], vector[None])

    def search(self, caller: str, text: str, vector: NDArray[np.float32]) -> list[str]:
        found = self._collection.query(query_embeddings=[vector], n_results=_LIMIT, where={"caller": caller})
        return found["documents"][0]


class LanceDB:
    package = "lancedb"

    def __init__(self, folder: Path) -> None:
        import lancedb

        self._database = lancedb.connect(folder)
        self._table: Any = None

    def load(self, callers: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        import pyarrow as pa

        flat = pa.array(vectors.ravel())
        rows = pa.table(
            {
                "caller": list(callers),
                "text": list(texts),
                "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
            }
        )
        if self._table is None:
            self._table = self._database.create_table("memories", rows)
        else:
            self._table.add(rows)

    def finish_loading(self) -> None:
        # A scalar index on the caller: the search is then exact, over that caller's rows alone.
        self._table.create_scalar_index("caller")
        self._table.optimize()

    def add(self, caller: str, text: str, vector: NDArray[np.float32]) -> None:
        self.load([caller], [text], vector[None])

    def search(self, caller: str, text: str, vector: NDArray[np.float32]) -> list[str]:
        found = (
            self._table.search(vector, vector_column_name="vector")
            .distance_type("cosine")
            .where(f"caller = '{caller}'", prefilter=True)
            .limit(_LIMIT)
            .select(["text", "_distance"])
            .to_list()
        )
        return [row["text"] for row in found]


class Mem0:
    """With its default store, a local Qdrant. No model draws facts: the texts are stored as they are."""

    package = "mem0ai"

    def __init__(self, folder: Path) -> None:
        os.environ["MEM0_DIR"] = str(folder)
        os.environ.setdefault(
            "OPENAI_API_KEY", "unused"
        )  # it makes a client at once, and never calls it here
        from mem0 import Memory

        store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 512}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = self
        self._vector: NDArray[np.float32] | None = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """What mem0 asks of an embedding model."""
        assert self._vector is not None
        vector: list[float] = self._vector.tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]

    def load(self, callers: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        import uuid

        # Straight into its store, with the fields its own `add` writes: one at a time would take an hour.
        self._memory.vector_store.insert(
            vectors=vectors.tolist(),
            payloads=[
                {
                    "data": text,
                    "hash": str(hash(text)),
                    "user_id": caller,
                    "created_at": "2026-01-01T00:00:00+00:00",
                }
                for caller, text in zip(callers, texts, strict=True)
            ],
            ids=[str(uuid.uuid4()) for _ in texts],
        )

    def finish_loading(self) -> None:
        pass

    def add(self, caller: str, text: str, vector: NDArray[np.float32]) -> None:
        self._vector = vector
        self._memory.add(text, user_id=caller, infer=False)

    def search(self, caller: str, text: str, vector: NDArray[np.float32]) -> list[str]:
        self._vector = vector
        try:
            found = self._memory.search(text, filters={"user_id": caller}, top_k=_LIMIT)
        except TypeError:  # versions before 1.0
            found = self._memory.search(text, user_id=caller, limit=_LIMIT)
        return [row["memory"] for row in found["results"]]


STORES: dict[str, Callable[[Path], Store]] = {"chroma": Chroma, "lancedb": LanceDB, "mem0": Mem0}


def measure(name: str, folder: Path, data: Data, questions: int, adds: int) -> dict[str, Any]:
    store = STORES[name](folder / name)
    embedder = real_embedder()
    # In the order in which callers would have said them, so that a store that is not filled in time knows of each.
    pairs = [
        (caller, numbers[at])
        for at in range(len(data.callers[0]))
        for caller, numbers in enumerate(data.callers)
    ]
    loaded = 0
    started = time.perf_counter()
    while loaded < len(pairs) and time.perf_counter() - started < _PATIENCE:
        part = pairs[loaded : loaded + _AT_ONCE]
        rows = [number for _, number in part]
        store.load(
            [caller_name(caller) for caller, _ in part], [data.texts[row] for row in rows], data.vectors[rows]
        )
        loaded += len(part)
    store.finish_loading()
    load_time = time.perf_counter() - started
    held: dict[int, list[int]] = {}
    for caller, number in pairs[:loaded]:
        held.setdefault(caller, []).append(number)
    nearest = 0
    taken: list[float] = []
    worked = 0.0
    begun = time.perf_counter()
    for attempt, (caller, question) in enumerate(data.questions(questions + _WARM, 5)):
        started, before = time.perf_counter(), time.process_time()
        if started - begun > _PATIENCE:
            break
        vector = embedder.embed([question])[0]
        found = store.search(caller_name(caller), question, vector)
        if attempt >= _WARM:
            taken.append((time.perf_counter() - started) * 1000)
            worked += (time.process_time() - before) * 1000
            best = max(held[caller], key=lambda number: float(data.vectors[number] @ vector))
            nearest += data.texts[best] in found
    started = time.perf_counter()
    for number in range(adds):
        store.add(caller_name(number), f"{data.texts[number]} Number {number}.", data.vectors[number])
    added = time.perf_counter() - started
    taken.sort()
    return {
        "version": importlib.metadata.version(store.package),
        "memories": loaded,
        "load_per_s": loaded / load_time,
        "adds_per_s": adds / added,
        "recall_p50_ms": statistics.median(taken),
        "recall_p95_ms": taken[int(len(taken) * 0.95)],
        "recall_cpu_ms": worked / len(taken),
        "nearest_found": nearest / len(taken),
        "disk_mb": sum(file.stat().st_size for file in (folder / name).rglob("*") if file.is_file()) / 1e6,
    }


if __name__ == "__main__":
    name, folder = sys.argv[1], Path(sys.argv[2])
    memories, callers, questions, adds = map(int, sys.argv[3:7])
    os.environ["MEM0_TELEMETRY"] = "False"  # read when it is imported
    try:
        __import__({"chroma": "chromadb", "lancedb": "lancedb", "mem0": "mem0"}[name])
    except ImportError as error:
        print(json.dumps({"absent": f"{error.name} is not installed"}))
    else:
        data = make_data(memories, callers, folder / "vectors.npy")
        print(json.dumps(measure(name, folder, data, questions, adds)))
