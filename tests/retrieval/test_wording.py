"""The form in which texts are embedded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supermemory_livekit.retrieval.wording import first_person


@pytest.mark.parametrize(
    ("stored", "embedded"),
    [
        ("Caller lives in Porto.", "I live in Porto."),
        ("The user's phone is an iPhone.", "my phone is an iPhone."),
        ("The caller is allergic to nuts. The caller has a dog.", "I am allergic to nuts. I have a dog."),
        ("Caller doesn't drink; the caller’s wife does.", "I do not drink; my wife does."),
        (
            "Caller watches films and studies law with their son.",
            "I watch films and studies law with my son.",
        ),
        ("- Caller was in Rome this week.", "- I was in Rome this week."),
        ("The customer this morning", "I this morning"),
        (
            "[2026-11-29T17:16:29.123Z] Caller: I moved.\n[2026-11-29T17:16:31.004Z] Agent: Noted.",
            "I moved.\nNoted.",
        ),
        ("[2026-11-29T17:16:29.123Z] Agent (interrupted): Once upon a", "Once upon a"),
        ("[2026-11-29T17:16:29.123Z] Caller (part 2 of 3): and then", "and then"),
    ],
)
def test_what_is_said_of_the_caller_is_embedded_as_the_caller_would_say_it(
    stored: str, embedded: str
) -> None:
    """Embedding facts in the first person finds clearly more of them (decision 0002)."""
    assert first_person(stored) == embedded


@pytest.mark.parametrize(
    "text",
    [
        "what is my user name",
        "I spoke to two callers",
        "Their house is big.",
        "where do I live",
        "",
        "caller"[:0],
    ],
)
def test_what_is_not_about_the_caller_stays_as_it_is(text: str) -> None:
    """The rewriting must not touch other people's words."""
    assert first_person(text) == text


@given(st.text(max_size=200))
def test_rewriting_twice_is_rewriting_once(text: str) -> None:
    """Queries and stored texts pass through the same function, some of them twice."""
    once = first_person("The caller likes tea. " + text.replace("[", "").replace(":", ""))
    assert once.startswith("I like tea.")
    assert first_person(once) == once
