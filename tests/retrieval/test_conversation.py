"""Turns of conversations: found with what stands around them, returned as readable stretches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Index, Passage, Place, Ranked, in_context, turns
from supermemory_livekit.retrieval.conversation import FEATURES, Conversations
from supermemory_livekit.retrieval.excerpts import excerpts
from supermemory_livekit.retrieval.fulltext import FullText
from supermemory_livekit.retrieval.windows import LONGEST, speaker

WEATHER = "Agent: The weather is grey"


def passages(document: str, lines: Sequence[str], vector: NDArray[np.float32] | None = None) -> list[Passage]:
    """The turns of one call; keys are the document and the number of the turn."""
    content = "\n".join(lines)
    return [
        Passage(f"{document}{n}", content[start:stop], "chunk", None, vector, Place(document, start, stop))
        for n, (start, stop) in enumerate(turns(content))
    ]


def call(*lines: str) -> Index:
    index = Index()
    index.add(passages("a", lines))
    return index


def search(index: Index, query: str, limit: int = 10) -> list[Ranked]:
    return index.search(query, limit=limit, threshold=0)


def test_an_answer_is_found_by_the_question_before_it_and_they_are_one_hit() -> None:
    """Decision 0013: a turn is judged with what stands around it."""
    index = call(WEATHER, "Agent: Any allergies?", "Caller: Yes, peanuts.", "Agent: I see.", WEATHER, WEATHER)
    best = search(index, "what allergies do I have")[0]
    assert {"a1", "a2"} <= set(best.keys)
    assert best.key in {"a1", "a2"}


def test_a_hit_ends_where_the_call_does() -> None:
    """Neighbours are turns of one document, in the order of its text, whatever order they came in."""
    index = Index()
    first, second = passages("a", ["Caller: I play the piano"]), passages("b", ["Agent: The piano is tuned"])
    later = passages("a", ["Caller: I play the piano", "Agent: Which piano?"])[1:]
    index.add([*later, *second, *first])
    assert {hit.keys for hit in search(index, "piano")} == {("a0", "a1"), ("b0",)}


def test_facts_and_text_that_nobody_says_are_hits_by_themselves() -> None:
    """Only turns of a conversation are joined."""
    index = Index()
    index.add(passages("a", ["piano " * 150, "piano " * 150]))
    index.add([Passage("fact", "Plays the piano", "memory")])
    assert {hit.keys for hit in search(index, "piano")} == {("a0",), ("a1",), ("fact",)}


def test_turns_around_one_that_is_taken_out_become_neighbours() -> None:
    """A document is cut anew when it is replaced."""
    index = call("Caller: The piano came", WEATHER, WEATHER, WEATHER, WEATHER, "Agent: A good piano")
    assert len(search(index, "piano")) == 2
    for number in (1, 2, 3, 4):
        index.discard(f"a{number}")
    assert [hit.keys for hit in search(index, "piano")] == [("a0", "a5")]


@pytest.mark.parametrize(
    ("query", "best"),
    [("What did Ana paint?", "a1"), ("What did Bo paint?", "a6"), ("painting a boat", "a6")],
)
def test_who_is_named_is_who_said_it(query: str, best: str) -> None:
    """Decision 0013: questions name a speaker; without a name the newest of equals comes first."""
    index = call(WEATHER, "Ana: I paint a boat", *[WEATHER] * 4, "Bo: I paint a boat", WEATHER)
    assert search(index, query)[0].key == best


@pytest.mark.parametrize(("query", "best"), [("the deposit I paid", "a0"), ("the deposit you paid", "a4")])
def test_in_a_call_i_is_the_caller_and_you_the_agent(query: str, best: str) -> None:
    """The lines of a stored call name nobody; a question of the caller does so by its pronouns."""
    index = call("Caller: The deposit is paid", WEATHER, WEATHER, WEATHER, "Agent: The deposit is paid")
    assert search(index, query)[0].key == best


def test_asked_when_a_turn_that_says_when_comes_first() -> None:
    """Decision 0013: a temporal question is answered by a turn with a time in it."""
    may, again = "Caller: I moved to Porto last May", "Caller: I moved to Porto again"
    index = call(WEATHER, may, *[WEATHER] * 4, again, WEATHER)
    assert search(index, "when was the move to Porto")[0].key == "a1"
    assert search(index, "moved to Porto")[0].key == "a6"


def test_who_speaks_is_no_reason_by_itself() -> None:
    """No hit for a question that has nothing to do with what was said."""
    index = call("Caller: I paint a boat in May", "Agent: Lovely, when?")
    assert search(index, "when did my zebra hibernate") == []


def test_an_exact_identifier_in_a_call_passes_a_strict_threshold_although_its_meaning_is_nothing() -> None:
    """Requirement of the retrieval part: an exact identifier match must pass."""
    index = Index()
    index.add(
        passages(
            "a",
            [WEATHER, WEATHER, "Caller: It is 88213.", WEATHER, WEATHER],
            np.array([0, 1], dtype=np.float32),
        )
    )
    vector = np.array([1, 0], dtype=np.float32)
    assert index.search("88213", query_vector=vector, limit=5, threshold=0.3)[0].key == "a2"


def test_a_turn_without_its_vector_yet_is_found_beside_those_that_have_one() -> None:
    """What the caller said a moment ago is found before the model has looked at it."""
    index = Index()
    index.add(passages("old", ["Caller: I sail"], np.array([0, 1], dtype=np.float32)))
    index.add(passages("new", ["Caller: I play the piano"]))
    vector = np.array([1, 0], dtype=np.float32)
    assert index.search("piano", query_vector=vector, limit=1, threshold=0.1)[0].key == "new0"


def test_turns_are_found_in_scripts_without_spaces() -> None:
    """Any language: a Chinese call, found by a word and by the question before the answer."""
    index = call(
        "Agent: 今天天气很好", "Agent: 您对什么过敏?", "Caller: 花生。", "Agent: 好的", "Agent: 再见"
    )
    best = search(index, "我对什么过敏")[0]
    assert {"a1", "a2"} <= set(best.keys)
    assert best.key in {"a1", "a2"}


def test_a_hit_stays_readable() -> None:
    """At most six turns, and no more text than one piece may have."""
    index = call(*["Caller: piano"] * 20, *["Agent: piano " + "so " * 200] * 4)
    hits = search(index, "piano", limit=100)
    assert sorted(key for hit in hits for key in hit.keys) == sorted(f"a{n}" for n in range(24))
    assert max(len(hit.keys) for hit in hits) == 6
    assert all(sum(int(key[1:]) >= 20 for key in hit.keys) <= 1 for hit in hits)


def test_the_first_hits_are_exact_and_later_ones_bridge_a_turn() -> None:
    """Decision 0013: further down it is less certain which turn was meant."""
    conversations = placed([10] * 10)
    ranked = [0, 20, 40, 60, 2, 22, 42, 62]
    found = [hit.slots for hit in excerpts(ranked, conversations, 20)]
    assert found == [[0], [20], [40], [60, 61, 62], [2], [22], [42]]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("the order of June 3", "early"),
        ("what did I order on 20 June 2026", "late"),
        ("what did I order on 31 May", "early"),
        ("what did I order in June", "late"),
        ("what did I order on 3 March 2020", "late"),
    ],
)
def test_what_was_said_on_a_date_that_is_named_or_soon_after_comes_first(query: str, best: str) -> None:
    """Decision 0013: what happens is told afterwards; where no date decides, the newest of equals comes first."""
    index = Index()
    for name, stamp in (("early", "[2026-06-05T10:00:00.000Z]"), ("late", "[2026-06-21T10:00:00.000Z]")):
        index.add(passages(name, [f"{stamp} {WEATHER}", f"{stamp} Caller: I order tulips"]))
    assert search(index, query)[0].key.startswith(best)


def test_a_turn_about_the_date_that_is_named_is_as_good_whenever_it_was_said() -> None:
    """An appointment is made long before its day."""
    lines = [
        "[2026-03-01T10:00:00.000Z] Caller: The dentist is on June 3",
        "[2026-03-01T10:00:00.000Z] Caller: The dentist is near",
        "[2026-06-04T10:00:00.000Z] Caller: The dentist was kind",
        "Caller: The dentist, whenever it was",
    ]
    conversations, fulltext = Conversations(), FullText()
    conversations.grow(len(lines))
    fulltext.grow(len(lines))
    for slot, line in enumerate(lines):
        conversations.put(slot, line, Place("a", slot, slot + 1))
        fulltext.put(slot, line)
    date = FEATURES.index("date")
    off = conversations.features("my dentist on June 3", fulltext, None)[date]
    assert off.tolist() == [0, pytest.approx(1 / 14 - 1), 0, 0, 0]
    conversations.clear(2)
    assert not conversations.features("my dentist on June 3", fulltext, None)[date].any()


def test_turns_that_say_all_that_is_asked_come_before_one_that_repeats_a_part() -> None:
    """Decision 0013: `covered`."""
    index = Index()
    index.add(passages("all", ["Agent: Bulbs?", WEATHER, "Caller: Tulips", WEATHER, "Agent: In Delft?"]))
    index.add(passages("part", [WEATHER, WEATHER, "Caller: " + "tulips " * 30, WEATHER, WEATHER]))
    assert search(index, "tulips bulbs Delft")[0].key == "all2"


def test_from_the_eighth_a_hit_begins_with_what_stands_around() -> None:
    """Decision 0013: a reply has no room for these, but a reader of ten hits has; nothing is returned twice."""
    conversations = placed([10] * 10)
    ranked = [0, 20, 30, 40, 50, 60, 70, 80, 95, 93, 12]
    found = [hit.slots for hit in excerpts(ranked, conversations, 20)]
    assert found[6:] == [[70], [80, 81, 82], [93, 94, 95, 96, 97], [10, 11, 12, 13, 14]]
    assert [hit.best for hit in excerpts(ranked, conversations, 20)] == [*ranked[:9], 12]


def placed(sizes: Sequence[int]) -> Conversations:
    """So many turns in each document, in consecutive slots."""
    conversations = Conversations()
    conversations.grow(sum(sizes))
    slot = 0
    for document, size in enumerate(sizes):
        for turn in range(size):
            conversations.put(slot, "Caller: yes", Place(str(document), turn * 12, turn * 12 + 11))
            slot += 1
    return conversations


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.randoms(), st.integers(1, 12))
def test_no_turn_is_returned_twice_and_the_limit_counts_hits(
    sizes: list[int], random: object, limit: int
) -> None:
    """Whatever the ranking: stretches without gaps, inside one document, best first."""
    conversations = placed(sizes)
    ranked = list(range(sum(sizes)))
    assert hasattr(random, "shuffle")
    random.shuffle(ranked)
    found = excerpts(ranked, conversations, limit)
    slots = [slot for hit in found for slot in hit.slots]
    assert len(slots) == len(set(slots))
    assert len(found) <= limit
    assert [ranked.index(hit.best) for hit in found] == sorted(ranked.index(hit.best) for hit in found)
    for hit in found:
        assert hit.slots == list(range(hit.slots[0], hit.slots[0] + len(hit.slots)))
        assert len({conversations.place(slot).document for slot in hit.slots}) == 1


LINES = st.lists(
    st.sampled_from(["Ana: the piano", "Bo: which piano?", "Ana: since May", "Bo: rex"]),
    min_size=1,
    max_size=8,
)


@given(st.lists(LINES, min_size=1, max_size=4), st.sets(st.integers(0, 20), max_size=8))
def test_an_index_of_turns_that_shrank_answers_like_a_fresh_one(
    calls: list[list[str]], gone: set[int]
) -> None:
    """Incremental changes leave nothing behind."""
    everything = [passage for n, lines in enumerate(calls) for passage in passages(f"d{n}-", lines)]
    index, fresh = Index(), Index()
    for passage in reversed(everything):
        index.add([passage])
    kept = [passage for n, passage in enumerate(everything) if n not in gone]
    for n in gone:
        if n < len(everything):
            index.discard(everything[n].key)
    fresh.add(reversed(kept))
    ours, theirs = (
        search(index, "when did Ana get the piano", 50),
        search(fresh, "when did Ana get the piano", 50),
    )
    assert [(hit.keys, round(hit.similarity, 4)) for hit in ours] == [
        (hit.keys, round(hit.similarity, 4)) for hit in theirs
    ]


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("[2026-11-01T10:00:00.000Z] Agent (interrupted): Shall I", "Agent"),
        ("Caller: yes", "Caller"),
        ("田中: はい", "田中"),
        ("the key: under the mat. " * 3, "the key"),
        ("just words", ""),
        ("[2026-11-01] a note", ""),
    ],
)
def test_a_turn_begins_with_who_speaks(text: str, who: str) -> None:
    """The lines of our transcripts, and of others that name a speaker."""
    assert speaker(text) == who


def test_a_turn_is_embedded_with_what_it_may_answer() -> None:
    """Decision 0013; other text, and what is long, is embedded by itself."""
    assert in_context("Caller: Yes.", "Agent: Nuts?") == "Agent: Nuts?\nCaller: Yes."
    assert in_context("Caller: Yes.", "") == "Caller: Yes."
    assert in_context("a paragraph", "another") == "a paragraph"
    assert in_context("Caller: Yes.", "word " * (LONGEST // 5)) == "Caller: Yes."
