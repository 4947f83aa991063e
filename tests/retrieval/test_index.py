"""Ranking, thresholds and changes of an index, with vectors made by hand."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Index, Kind, Passage, Ranked

NOON = datetime(2026, 11, 29, 12, tzinfo=timezone.utc)
WORDS = ("porto", "piano", "nurse", "volvo", "jazz", "88213", "rex", "мост", "上海")


def direction(*numbers: float) -> NDArray[np.float32]:
    vector = np.array(numbers, dtype=np.float32)
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def texts(*passages: str, kind: Kind = "memory") -> Index:
    index = Index()
    index.add(Passage(text, text, kind) for text in passages)
    return index


def keys(hits: Iterable[Ranked]) -> list[str]:
    return [hit.key for hit in hits]


def test_without_vectors_the_words_decide_and_similarity_says_how_much_of_the_query_is_covered() -> None:
    """Full text only: similarity still runs from 0 to 1 and can be compared with a threshold."""
    index = texts("Booking reference 88213", "The piano teacher lives in Porto", "Allergic to nuts")
    assert keys(index.search("88213", limit=5, threshold=0.5)) == ["Booking reference 88213"]
    whole = index.search("piano teacher porto", limit=5, threshold=0)[0].similarity
    part = index.search("piano repair shop", limit=5, threshold=0)[0].similarity
    assert 0 < part < 0.5 < whole <= 1
    assert index.search("weather tomorrow", limit=5, threshold=0) == []


@pytest.mark.parametrize("query", ["88213", "hi, my booking is 88 213, is it fine?", "reference 8 8 2 1 3"])
def test_an_exact_identifier_passes_a_strict_threshold_although_its_meaning_is_nothing(query: str) -> None:
    """Requirement of the retrieval part: an exact identifier match must pass."""
    index = Index()
    index.add([Passage("booking", "Booking reference 88213", "memory", None, direction(0, 1))])
    index.add(
        [
            Passage(f"other {n}", f"Fact about {word}", "memory", None, direction(0, 1))
            for n, word in enumerate(WORDS)
            if word != "88213"
        ]
    )
    hits = index.search(query, query_vector=direction(1, 0), limit=3, threshold=0.3)
    assert hits[0].key == "booking"


def test_meaning_finds_what_shares_no_word() -> None:
    """Facts are asked for in other words than they are stored in."""
    index = Index()
    index.add([Passage("home", "Lives in Porto", "memory", NOON, direction(1, 1))])
    index.add([Passage("dog", "Dog is called Rex", "memory", NOON, direction(0, 1))])
    hits = index.search("where is the house", query_vector=direction(1, 0), limit=5, threshold=0.1)
    assert keys(hits) == ["home"]
    assert hits[0].similarity > 0.5


def test_words_weigh_more_for_call_text_than_for_facts() -> None:
    """Measured: full text finds call text, meaning finds short facts (decision 0002)."""
    partly: dict[Kind, float] = {}
    alike: dict[Kind, float] = {}
    kinds: tuple[Kind, ...] = ("memory", "chunk")
    for kind in kinds:
        index = Index()
        index.add([Passage("p", "the piano lesson was moved", kind, NOON, direction(1, 1))])
        partly[kind] = index.search("piano prices", query_vector=direction(1, -1), limit=1, threshold=0)[
            0
        ].similarity
        alike[kind] = index.search("violin", query_vector=direction(1, 1), limit=1, threshold=0)[0].similarity
    assert partly["chunk"] > partly["memory"]
    assert alike["memory"] > alike["chunk"]


def test_no_hit_is_below_the_threshold_and_none_beyond_the_limit() -> None:
    """Case R9; the threshold is applied to the blended similarity."""
    index = Index()
    index.add(Passage(f"p{n}", f"porto {n}", "memory", NOON, direction(1, n / 4)) for n in range(40))
    everything = index.search("porto", query_vector=direction(1, 0), limit=100, threshold=0)
    assert [hit.similarity for hit in everything] == sorted(
        (hit.similarity for hit in everything), reverse=True
    )
    bar = everything[10].similarity
    above = index.search("porto", query_vector=direction(1, 0), limit=100, threshold=bar)
    assert above == [hit for hit in everything if hit.similarity >= bar]
    assert index.search("porto", query_vector=direction(1, 0), limit=3, threshold=0) == everything[:3]
    assert index.search("porto", limit=0, threshold=0) == []


def test_of_equal_hits_the_newest_comes_first() -> None:
    """Recency is a tie-breaker: "lives in Lisbon" and "lives in Porto" are equally near to "where do I live"."""
    index = Index()
    index.add([Passage("new", "Lives in Porto", "memory", NOON, direction(1, 1))])
    index.add([Passage("undated", "Lives in Rome", "memory", None, direction(1, 1))])
    index.add([Passage("old", "Lives in Lisbon", "memory", NOON - timedelta(days=30), direction(1, 1))])
    hits = index.search("home", query_vector=direction(1, 0), limit=3, threshold=0)
    assert keys(hits) == ["new", "old", "undated"]


def test_of_hits_with_one_time_the_last_added_comes_first() -> None:
    """Facts of one call carry one time; the later word holds."""
    index = Index()
    index.add([Passage("first", "piano", "memory", NOON), Passage("second", "piano", "memory", NOON)])
    assert keys(index.search("piano", limit=2, threshold=0)) == ["second", "first"]


def test_age_never_outweighs_a_better_match() -> None:
    """Recency is only a small tie-breaker."""
    index = Index()
    index.add([Passage("old", "a", "memory", NOON - timedelta(days=3000), direction(1, 2))])
    index.add([Passage("new", "b", "memory", NOON, direction(1, 2.3))])
    hits = index.search("c", query_vector=direction(1, 0), limit=2, threshold=0, now=NOON + timedelta(days=1))
    assert keys(hits) == ["old", "new"]
    assert (
        hits[0].similarity
        > 0.95 * index.search("c", query_vector=direction(1, 0), limit=2, threshold=0)[0].similarity
    )


def test_times_without_zone_are_utc() -> None:
    """Passages from a store that keeps naive times can be mixed with others."""
    index = Index()
    index.add(
        [
            Passage("zoned", "piano", "memory", NOON),
            Passage("naive", "piano", "memory", NOON.replace(tzinfo=None)),
        ]
    )
    first, second = index.search("piano", limit=2, threshold=0)
    assert first.similarity == second.similarity


def test_only_the_kinds_asked_for_are_found() -> None:
    """A search of memories alone never shows raw call text."""
    index = texts("I play the piano", kind="chunk")
    index.add([Passage("fact", "Plays the piano", "memory")])
    facts: tuple[Kind, ...] = ("memory",)
    calls: set[Kind] = {"chunk"}
    assert keys(index.search("piano", limit=5, threshold=0, kinds=facts)) == ["fact"]
    assert keys(index.search("piano", limit=5, threshold=0, kinds=calls)) == ["I play the piano"]
    assert len(index.search("piano", limit=5, threshold=0)) == 2
    assert index.search("piano", limit=5, threshold=0, kinds=()) == []


def test_a_passage_with_a_known_key_replaces_the_old_one() -> None:
    """A changed memory keeps its id; its old words must not find it any more."""
    index = texts("other")
    index.add([Passage("home", "Lives in Lisbon", "memory", NOON, direction(1, 0))])
    index.add([Passage("home", "Lives in Porto", "memory", NOON)])
    assert len(index) == 2
    assert index.search("Lisbon", query_vector=direction(1, 0), limit=5, threshold=0) == []
    assert keys(index.search("Porto", query_vector=direction(1, 0), limit=5, threshold=0)) == ["home"]


def test_a_vector_of_another_model_is_refused_and_changes_nothing() -> None:
    """Vectors of two models cannot be compared."""
    index = Index()
    index.add([Passage("a", "piano", "memory", NOON, direction(1, 0))])
    with pytest.raises(ValueError, match="3 numbers"):
        index.add([Passage("a", "volvo", "memory", NOON, direction(1, 0, 0))])
    assert keys(index.search("piano", limit=1, threshold=0)) == ["a"]


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_a_blank_query_finds_nothing(query: str) -> None:
    """Nothing was asked; the vector of a blank text means nothing."""
    index = Index()
    index.add([Passage("a", "piano", "memory", NOON, direction(1, 0))])
    assert index.search(query, query_vector=direction(1, 0), limit=5, threshold=0) == []


def test_an_empty_index_answers_and_a_key_nobody_knows_is_discarded_in_peace() -> None:
    """A caller nobody knows yet is the common case (case R1)."""
    index = Index()
    index.discard("nobody")
    assert len(index) == 0
    assert index.search("piano", query_vector=direction(1, 0), limit=5, threshold=0) == []


STEP = st.tuples(
    st.sampled_from("abcdefgh"),
    st.one_of(st.none(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)),
    st.one_of(st.none(), st.integers(0, 5)),
)


@given(
    st.lists(STEP, max_size=60), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), st.integers(0, 5)
)
def test_an_index_that_grew_and_shrank_answers_like_a_fresh_one(
    steps: list[tuple[str, list[str] | None, int | None]], asked: list[str], turn: int
) -> None:
    """Incremental changes leave nothing behind."""
    index, alive = Index(), dict[str, Passage]()
    for key, words, angle in steps:
        index.search(" ".join(asked), limit=1, threshold=0)
        alive.pop(key, None)
        if words is None:
            index.discard(key)
            continue
        vector = None if angle is None else direction(np.cos(angle), np.sin(angle))
        alive[key] = Passage(key, " ".join(words), "chunk" if len(words) > 3 else "memory", NOON, vector)
        index.add([alive[key]])
    fresh = Index()
    fresh.add(alive.values())
    assert len(index) == len(fresh) == len(alive)
    query, vector = " ".join(asked), direction(np.cos(turn), np.sin(turn))
    for given_vector in (None, vector):
        ours = index.search(query, query_vector=given_vector, limit=20, threshold=0)
        theirs = fresh.search(query, query_vector=given_vector, limit=20, threshold=0)
        assert {hit.key: round(hit.similarity, 4) for hit in ours} == {
            hit.key: round(hit.similarity, 4) for hit in theirs
        }
        assert all(0 < hit.similarity <= 1 for hit in ours)


def test_a_writer_and_readers_do_not_disturb_each_other() -> None:
    """The index is shared by threads: recall reads while the refresh writes."""
    index = Index()
    index.add(Passage(f"fixed {n}", f"piano {n}", "memory", NOON, direction(1, n)) for n in range(50))
    failures: list[BaseException] = []

    def write() -> None:
        for n in range(1500):
            index.add([Passage(f"moving {n}", f"piano volvo {n}", "chunk", NOON, direction(1, n))])
            index.discard(f"moving {n * 7 % 1500}")

    def read() -> None:
        for _ in range(100):
            hits = index.search("piano", query_vector=direction(1, 0), limit=5_000, threshold=0)
            assert {hit.key for hit in hits} >= {f"fixed {n}" for n in range(50)}

    def guarded(work: object) -> None:
        try:
            assert callable(work)
            work()
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (write, read, read)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []
