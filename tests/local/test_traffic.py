"""Background work beside requests."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.local import Engine
from supermemory_livekit.local.encoder import Encoder
from supermemory_livekit.local.traffic import Traffic


class Lengths:
    """An embedder whose vectors hold the length of the text, and which notes how many it gets at once."""

    model_id = "lengths"
    dimensions = 1

    def __init__(self) -> None:
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(len(texts))
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return cosines


def test_work_waits_until_no_request_is_under_way() -> None:
    """Issue: searching never waits for ingest."""
    traffic = Traffic(longest_wait=30)
    order: list[str] = []

    def work() -> None:
        traffic.give_way()
        order.append("work")

    worker = threading.Thread(target=work)
    with traffic.request():
        with traffic.request():
            worker.start()
        worker.join(0.2)
        order.append("answered")
    worker.join(20)
    assert order == ["answered", "work"]


def test_requests_without_end_do_not_stop_the_work() -> None:
    """Decision 11: calls become memories under any load."""
    traffic = Traffic(longest_wait=0.01)
    with traffic.request():
        for _ in range(3):
            traffic.give_way()


def test_background_work_embeds_in_steps_and_gets_the_same_vectors() -> None:
    """Decision 11: a query waits for a step, not for a batch."""
    model = Lengths()
    encoder = Encoder(lambda: model)
    assert encoder.background() is None
    encoder.load()
    background = encoder.background()
    assert background is not None
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    assert background.embed(texts)[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert max(model.batches) <= 2
    assert (background.model_id, background.dimensions) == ("lengths", 1)


async def test_an_engine_counts_its_requests(tmp_path: object) -> None:
    """Issue: searching never waits for ingest; whoever asks the engine is a request."""
    engine = Engine(f"{tmp_path}/memory.db", load=lambda: None)
    traffic = engine._traffic  # pyright: ignore[reportPrivateUsage]
    seen: list[int] = []
    try:
        await engine.read(lambda _: seen.append(traffic._requests))  # pyright: ignore[reportPrivateUsage]
        await engine.write(lambda _: seen.append(traffic._requests))  # pyright: ignore[reportPrivateUsage]
    finally:
        await engine.aclose()
    assert seen == [1, 1]
    assert traffic._requests == 0  # pyright: ignore[reportPrivateUsage]
