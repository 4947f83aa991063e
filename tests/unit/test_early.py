"""Words while they are spoken, and what can be looked up by them."""

from __future__ import annotations

import pytest

from supermemory_livekit.recall.early import SpokenWords, choose, content, is_trivial
from supermemory_livekit.store import Hit


def test_interim_words_are_replaced_and_final_ones_add_up() -> None:
    """Design 4.3: a turn may have several segments; the words that the reply answers are the final ones joined."""
    words = SpokenWords()
    heard = [
        words.hears("I want", final=False),
        words.hears("I want to", final=False),
        words.hears("I want to book", final=True),
        words.hears("a", final=False),
        words.hears("a table", final=True),
    ]
    assert heard == ["I want", "I want to", "I want to book", "I want to book a", "I want to book a table"]
    words.committed()
    assert words.hears("Thanks", final=False) == "Thanks"


@pytest.mark.parametrize(
    "text",
    ["", "  ", "ok", "OK.", "Uh-huh.", "mm hmm", "yeah, sure", "[laughter]", "*coughs*", "(noise) okay", "…"],
)
def test_nothing_is_looked_up_by_words_that_say_nothing(text: str) -> None:
    """Design 4.3: trivial turns start no search."""
    assert is_trivial(text)


@pytest.mark.parametrize("text", ["Lisbon", "no, Porto", "E24", "ok but when", "好的吗", "my dog?", "42"])
def test_a_word_that_says_something_is_looked_up(text: str) -> None:
    """Design 4.3: a short answer may name the very thing."""
    assert not is_trivial(text)


def test_the_finished_words_choose_from_what_unfinished_ones_found() -> None:
    """Design 4.3: an early result is used when it holds what the early words lacked."""
    hits = [
        Hit("Has a brown dog.", 0.6, "a"),
        Hit("The dog is called Rex.", 0.3, "b"),
        Hit("Sings.", 0.05, "c"),
    ]
    chosen = choose(hits, "my brown dog", "my brown dog Rex", limit=2, threshold=0.1)
    assert chosen.telling
    assert {hit.memory_id for hit in chosen.hits} == {"a", "b"}
    assert not choose(hits, "my brown dog", "my brown dog and the piano", limit=2, threshold=0.1).telling
    assert choose(hits, "my brown dog", "my brown dog", limit=2, threshold=0.1).telling
    assert all(hit.similarity >= 0.1 for hit in choose(hits, "dog", "dog", limit=9, threshold=0.1).hits)


def test_content_is_what_a_search_goes_by() -> None:
    """Design 4.3: stop words and order do not count."""
    assert content("What was the name of my dog") == content("name dog")
