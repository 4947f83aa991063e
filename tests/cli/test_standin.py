"""The stand-in language model answers from the context of the request and from nothing else."""

from __future__ import annotations

import inspect
import json

import pytest
from livekit.agents import llm

from supermemory_livekit.cli.demo import script, standin, words
from supermemory_livekit.cli.demo.standin import reply
from supermemory_livekit.testing import ToolCall

CALL_TEXT = (
    "[2026-11-29T10:00:00.000Z] Agent: I live in Lisbon. [2026-11-29T10:00:01.000Z] Caller: I live in Porto. "
    "[2026-11-29T10:00:02.000Z] Agent: All right."
)


def context(*turns: str, notes: tuple[str, ...] = ()) -> llm.ChatContext:
    """Turns begin with "C:" or "A:"; notes stand where recall puts them."""
    ctx = llm.ChatContext()
    for turn in turns:
        ctx.add_message(role="user" if turn.startswith("C:") else "assistant", content=turn[2:].strip())
    if notes:
        block = "\n".join(["Notes about the caller", *(f"- {note}" for note in notes)])
        ctx.items.insert(len(ctx.items) - 1, llm.ChatMessage(role="system", content=[block]))
    return ctx


def used(ctx: llm.ChatContext, tool: str, output: str, **arguments: str) -> llm.ChatContext:
    """The context after the model has used a tool."""
    ctx.items.append(llm.FunctionCall(call_id=tool, name=tool, arguments=json.dumps(arguments)))
    ctx.items.append(llm.FunctionCallOutput(call_id=tool, name=tool, output=output, is_error=False))
    return ctx


def said(ctx: llm.ChatContext) -> str:
    answer = reply(ctx, [])
    assert isinstance(answer, str)
    return answer


def test_without_notes_it_knows_nothing() -> None:
    """The demo must fail without recall."""
    assert said(context("C: Where do I live?")) == "I am sorry, I do not know that."
    assert said(context("C: Good day.")) == "All right."


@pytest.mark.parametrize(
    ("note", "question", "answer"),
    [
        ("[2026-11-29] I live in Porto.", "Where do I live?", "You live in Porto."),
        (CALL_TEXT, "Where do I live?", "You live in Porto."),
        ("I'm allergic to nuts.", "What am I allergic to?", "You are allergic to nuts."),
        ("My dog's name is Rex", "What is the name of my dog?", "Your dog's name is Rex."),
    ],
)
def test_it_answers_with_the_note_that_shares_most_words(note: str, question: str, answer: str) -> None:
    """It gives back what the caller stated, from a fact or from the text of a call, never what the agent said."""
    assert said(context(f"C: {question}", notes=("I like tea.", note))) == answer


def test_a_note_on_something_else_is_no_answer() -> None:
    """An honest stand-in does not guess."""
    assert (
        said(context("C: Where do I live?", notes=("My dog is called Rex.",)))
        == "I am sorry, I do not know that."
    )


def test_a_request_is_no_statement() -> None:
    """Words that ask to forget something must not be read out as a fact."""
    notes = ("[2026-11-29T10:00:00.000Z] Caller: Please forget my card number.",)
    assert said(context("C: What is my card number?", notes=notes)) == "I am sorry, I do not know that."


def test_it_greets_a_caller_whose_name_it_was_given() -> None:
    """What `preload` is for: it puts the profile into the first turn, so that the greeting can use it."""
    ctx = llm.ChatContext()
    ctx.add_message(role="system", content="Notes\n- [2026-11-29] My name is Ana.\n- I live in Porto.")
    assert said(ctx) == "Hello Ana, welcome back! As I recall, you live in Porto."
    assert said(llm.ChatContext()) == "Hello, how can I help you?"


def test_it_saves_what_the_caller_asks_to_remember_and_tells_how_it_went() -> None:
    """Design 6: when a tool fails, the caller hears that nothing is saved."""
    asked = "C: Please remember that my dog is called Rex."
    assert reply(context(asked), []) == ToolCall("remember", {"memory": "My dog is called Rex."})
    assert said(used(context(asked), "remember", "Saved. It will.")) == "Noted, your dog is called Rex."
    failed = used(context(asked), "remember", "NOT saved: no answer.")
    assert said(failed) == "I am sorry, I could not save that."


def test_it_corrects_by_forgetting_what_was_wrong_and_saving_what_is_right() -> None:
    """How a model uses the tools: `remember` saves a correction, `forget` takes the id that `search_memories` shows."""
    ctx = context("C: Sorry, that was wrong: my dog is called Max.")
    assert reply(ctx, []) == ToolCall("search_memories", {"query": "My dog is called Max."})
    used(
        ctx,
        "search_memories",
        "Notes\n- id=a1 I live in Porto.\n- id=b2 [2026-11-29, today] My dog is called Rex.",
    )
    assert reply(ctx, []) == ToolCall("forget", {"memory_id": "b2"})
    used(ctx, "forget", "Forgotten.")
    assert reply(ctx, []) == ToolCall("remember", {"memory": "My dog is called Max."})
    used(ctx, "remember", "Saved.")
    assert said(ctx) == "Noted, your dog is called Max."


def test_it_takes_back_what_it_saved_moments_ago() -> None:
    """Case T7: a fact that is still being processed has no id yet, but its exact text is known."""
    ctx = used(
        context("C: Remember that my dog is called Rex."),
        "remember",
        "Saved.",
        memory="My dog is called Rex.",
    )
    ctx.add_message(role="user", content="Sorry, that was wrong: my dog is called Max.")
    used(ctx, "search_memories", "Nothing stored about the caller matches this.")
    assert reply(ctx, []) == ToolCall("forget", {"memory_text": "My dog is called Rex."})


def test_it_forgets_by_id_and_admits_when_there_is_nothing() -> None:
    """A model finds the id with `search_memories`."""
    ctx = context("C: Please forget my card number.")
    assert reply(ctx, []) == ToolCall("search_memories", {"query": "my card number."})
    nothing = used(context("C: Please forget my card number."), "search_memories", "Nothing stored.")
    assert said(nothing) == "I have no note about that."
    used(ctx, "search_memories", "Notes\n- id=c3 My card number is 481.")
    assert reply(ctx, []) == ToolCall("forget", {"memory_id": "c3"})
    assert said(used(ctx, "forget", "NOT forgotten: no answer.")) == "I am sorry, that did not work."


def test_no_answer_is_written_down_in_the_stand_in() -> None:
    """What the demo checks is drawn at random, and the stand-in has none of it."""
    lists = [value for name, value in vars(script).items() if name.isupper() and isinstance(value, tuple)]
    vocabulary = {word for words_ in lists for word in words_}
    assert len(vocabulary) > 50
    code = inspect.getsource(standin) + inspect.getsource(words)
    assert [word for word in vocabulary if word in code] == []
