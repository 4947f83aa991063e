"""Words while they are spoken, and what can be looked up by them."""

from __future__ import annotations

import pytest

from supermemory_livekit.early import SpokenWords, content, is_trivial, share


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


def test_the_share_counts_words_with_content() -> None:
    """Design 4.3: an early result is used by its share of the finished words' content."""
    assert content("What was the name of my dog") == content("name dog")
    assert share("what was the name of my dog", "what was the name of my dog again") == 1.0
    assert share("which table did I book", "which table did I book in Porto") < 1.0
    assert share("", "which table did I book") == 0.0
    assert share("", "of the") == 1.0
