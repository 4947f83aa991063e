"""What `expect` and `stored` accept, what they refuse, and what they say of it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import pytest

from supermemory_livekit.recall.render import render_block
from supermemory_livekit.store import Profile, StoredMemory
from supermemory_livekit.testing import (
    RealtimeRequest,
    ScriptedLLM,
    ScriptedRealtimeModel,
    ScriptedStore,
    SeenContext,
    SeenItem,
    expect,
    stored,
)

QUESTION = "What do you recommend?"
AT = datetime(2026, 11, 29, tzinfo=timezone.utc)


def block(*facts: str) -> str:
    shown = render_block(Profile(static=facts), [], mode="full", limit=10, now=AT)
    assert shown is not None
    return shown


def item(role: str, text: str) -> SeenItem:
    return SeenItem(id=f"{role}_item", type="message", role=role, text=text)


def output(name: str, text: str) -> SeenItem:
    return SeenItem(id="output", type="function_call_output", role=None, text=text, name=name)


def request(*items: SeenItem, said: str = QUESTION, cancelled: bool = False) -> SeenContext:
    return SeenContext(items=(*items, item("user", said)), tools=(), at=0.0, cancelled=cancelled)


def model_that_saw(*requests: SeenContext) -> ScriptedLLM:
    model = ScriptedLLM()
    model.seen.extend(requests)
    return model


# -- knew


def test_a_fact_of_the_block_was_known_whatever_its_case_and_spacing() -> None:
    """Kit: "the agent knew X when it replied"."""
    seen = request(item("system", block("Is allergic to  peanuts.", "Is called <Ana>.")))
    expect(seen).knew("ALLERGIC to peanuts", "called <ana>").had_one_block()


def test_what_search_memories_answered_was_known() -> None:
    """Kit: a model that searches learns as one that is told."""
    seen = request(output("search_memories", "Notes about the caller.\n- id=m1 Is allergic to peanuts."))
    expect(seen).knew("allergic to peanuts").had_no_block()


def test_an_addition_to_the_instructions_of_a_realtime_model_was_known() -> None:
    """Design 4.8: a realtime model may take what was recalled as instructions alone."""
    seen = RealtimeRequest((), f"Be kind.\n{block('Is called Ana.')}", None, 0.0)
    expect(seen).knew("called Ana").had_one_block()


@pytest.mark.parametrize(
    ("seen", "hint"),
    [
        (request(said="I eat no peanuts"), "The caller said it in this call"),
        (request(item("system", "Never offer peanuts.")), "It stands in a message of role 'system'"),
        (request(output("menu", "- peanuts")), "It stands in what the tool menu answered"),
        (request(item("system", block("Is called Ana."))), "Memory told it:\n  - Is called Ana."),
        (request(), "Memory told it nothing."),
        (request(said=block("Hates peanuts.")), "The caller said it in this call"),
    ],
    ids=["said by the caller", "instruction", "other tool", "other fact", "nothing", "fence in what is said"],
)
def test_what_did_not_come_from_memory_was_not_known_and_the_failure_says_why(
    seen: SeenContext, hint: str
) -> None:
    """Kit: an expectation that an instruction could fulfil tests nothing."""
    with pytest.raises(AssertionError) as failure:
        expect(seen).knew("peanuts")
    assert str(failure.value).startswith("the model did not know 'peanuts' when it replied to ")
    assert hint in str(failure.value)


def test_the_head_of_the_block_is_no_fact() -> None:
    """Kit: the words that every block begins with say nothing of this caller."""
    with pytest.raises(AssertionError, match="did not know"):
        expect(request(item("system", block("Is called Ana.")))).knew("notes about the caller")


# -- did not know


@pytest.mark.parametrize(
    ("seen", "where"),
    [
        (request(item("system", block("Hates Peanuts."))), "a message of role 'system': '- Hates Peanuts.'"),
        (request(item("assistant", "No peanuts,\nthen.")), "a message of role 'assistant'"),
        (request(output("menu", "peanuts")), "what the tool menu answered"),
        (RealtimeRequest((), "No peanuts.", None, 0.0), "the instructions"),
        (RealtimeRequest((), None, "No peanuts.", 0.0), "the instructions"),
    ],
    ids=["memory", "the agent's words", "a tool", "standing instructions", "instructions for one reply"],
)
def test_what_stood_anywhere_but_in_the_callers_words_was_known(
    seen: SeenContext | RealtimeRequest, where: str
) -> None:
    """Kit: a leak is a leak, wherever it stands."""
    with pytest.raises(AssertionError, match="the model knew 'peanuts'") as failure:
        expect(seen).did_not_know("peanuts")
    assert where in str(failure.value)


def test_what_the_caller_said_and_the_model_asked_for_is_not_known() -> None:
    """Kit: the words of this call are no memory, and neither is a search for them."""
    asked = SeenItem(
        id="call", type="function_call", role=None, text='{"query": "peanuts"}', name="search_memories"
    )
    expect(request(asked, said="I eat no peanuts")).did_not_know("peanuts")


def test_a_text_is_found_far_down_in_a_long_context() -> None:
    """Kit: a stored text is neutralised up to 20,000 characters; an expectation must not stop there."""
    long = "\n".join([*["word " * 200] * 60, "the end"])
    with pytest.raises(AssertionError, match="the model knew"):
        expect(request(item("system", long))).did_not_know("the end")


def test_nothing_to_look_for_is_an_error() -> None:
    """Kit: a blank text is in everything, and in nothing."""
    for blank in ((), ("",), (" \n",)):
        with pytest.raises(ValueError, match="say what to look for"):
            expect(request(item("system", block("Is called Ana.")))).knew(*blank)
        with pytest.raises(ValueError, match="say what to look for"):
            expect(request()).did_not_know(*blank)


# -- which reply


def test_the_newest_reply_counts_and_attempts_that_were_given_up_do_not() -> None:
    """LiveKit: a preemptive attempt that is superseded never becomes a reply."""
    first = request(item("system", block("One.")), said="first")
    attempt = request(item("system", block("Two.")), said="second", cancelled=True)
    second = request(item("system", block("Three.")), said="second, whole")
    given_up = request(item("system", block("Four.")), said="third", cancelled=True)
    model = model_that_saw(first, attempt, second, given_up)
    expect(model).knew("three")
    expect(model, reply=0).knew("one")
    expect(model, to="FIRST").knew("one")
    assert expect(model, reply="every").requests == [first, attempt, second, given_up]
    with pytest.raises(AssertionError, match="did not know 'three' when it replied to 'first'"):
        expect(model, reply="every").knew("three")


def test_a_reply_that_was_not_given_is_a_failure_that_tells_which_were() -> None:
    """Kit: good failure messages."""
    with pytest.raises(AssertionError, match="the model was not asked for a reply"):
        expect(ScriptedLLM())
    with pytest.raises(AssertionError, match="the model was not asked for a reply"):
        expect(ScriptedRealtimeModel())
    model = model_that_saw(request(said="hello"))
    with pytest.raises(AssertionError, match=r"not asked for a reply to 'bye', but to:\n  - 'hello'"):
        expect(model, to="bye")
    with pytest.raises(AssertionError, match=r"there is no reply 1: the model was asked 1 time"):
        expect(model, reply=1)


# -- blocks


def test_a_block_of_an_earlier_turn_is_one_too_many() -> None:
    """Design 4.1: our own items are stripped before a new one is put in."""
    seen = request(item("system", block("One.")), item("system", block("Two.")))
    with pytest.raises(AssertionError, match=r"had 2 block\(s\) of notes .*, not 1"):
        expect(seen).had_one_block()
    with pytest.raises(AssertionError, match=r"had 0 block\(s\) of notes .*, not 1\. Memory told it nothing"):
        expect(request()).had_one_block()
    with pytest.raises(AssertionError, match="not 0"):
        expect(seen).had_no_block()


# -- callers apart


async def test_whatever_the_store_keeps_of_another_caller_alone_is_a_leak() -> None:
    """Case S9: nothing of another caller, whichever way it was stored."""
    store = ScriptedStore().knows("ben", "Sits by the window.", "Likes tea.").knows("ana", "Likes tea.")
    store.finds("ben", "The soup was cold.")
    store.stored["ben"] = [StoredMemory("m1", "Drives a tram.")]
    await store.remember("ben", "Rings on Mondays.", dreaming="instant", timeout=1)
    line = "[2026-11-29T10:00:00.000Z] Caller: my dog is called Rex\n[2026-11-29T10:00:01.000Z] Agent: Noted."
    await store.append("ben", "lk-1", line, dreaming="instant", at=AT, timeout=1)
    leaks = (
        "Sits by the window.",
        "The soup was cold.",
        "Drives a tram.",
        "Rings on Mondays.",
        "my dog is called Rex",
    )
    for leak in leaks:
        with pytest.raises(AssertionError, match="the model knew"):
            expect(request(item("system", block(leak)))).knew_nothing_of("ben", store)
    expect(request(item("system", block("Likes tea.", "Noted.")))).knew_nothing_of("ben", store)


def test_a_caller_of_whom_nothing_is_kept_alone_tests_nothing() -> None:
    """Kit: a test that cannot fail must say so."""
    store = ScriptedStore().knows("ben", "Likes tea.").knows("ana", "likes tea.")
    for tag in ("ben", "nobody"):
        with pytest.raises(AssertionError, match=f"keeps nothing of '{tag}' alone"):
            expect(request()).knew_nothing_of(tag, store)


# -- stored


async def test_what_was_stored_is_told_without_times_and_by_call() -> None:
    """Design 5.3: each line shows who and when."""
    store = ScriptedStore()
    for custom_id, tag, words in (("lk-mon", "ana", "Hi"), ("lk-fri", "ana", "Bye"), ("lk-mon", "ben", "Oh")):
        line = f"[2026-11-29T10:00:00.000Z] Caller: {words}"
        await store.append(tag, custom_id, line, dreaming="instant", at=AT, timeout=1)
    assert stored(store, "ana") == ["Caller: Hi", "Caller: Bye"]
    assert stored(store, "ana", session_id="fri") == ["Caller: Bye"]
    assert stored(store, "nobody") == []


def test_what_is_no_scripted_store_is_refused_with_a_word_on_what_to_pass(tmp_path: Path) -> None:
    """A stranger's remark: `stored(supermemory_local, …)` said that a path has no documents."""
    with pytest.raises(
        TypeError, match=r"a ScriptedStore, such as the fixture supermemory_store.*memory\.search"
    ):
        stored(cast(Any, tmp_path), "ana")


# -- shorthand of the store


async def test_a_store_knows_and_finds_what_it_was_told() -> None:
    """Kit: a scripted memory in one word each; what is told later adds to it."""
    store = ScriptedStore().knows("ana", "One.").knows("ana", "Two.").finds("ana", "Said before.")
    assert await store.profile("ana", timeout=1) == Profile(static=("One.", "Two."))
    found = await store.search("ana", "anything", limit=9, threshold=0.1, mode="hybrid", timeout=1)
    assert [hit.text for hit in found] == ["Said before."]
    listed = await store.memories("ana", page=1, limit=9, timeout=1)
    assert [(entry.text, entry.id) for entry in listed.entries] == [("Said before.", found[0].memory_id)]
    assert await store.forget("ana", memory_id=found[0].memory_id, timeout=1)
    assert await store.search("ana", "anything", limit=9, threshold=0.1, mode="hybrid", timeout=1) == []
