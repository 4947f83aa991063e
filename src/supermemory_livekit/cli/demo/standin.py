"""A stand-in for a language model, for a demo without key and network. It is NOT a language model.

It knows nothing but what the chat context of the request holds: notes in system messages, what the caller said
earlier in the call, results of tools. To a question it gives back the statement there that shares most words with it,
or says that it does not know. Asked to remember, correct or forget something it calls the memory tools. It has no
list of answers, so what it answers about an earlier call can only come from recall.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from livekit.agents import llm

from supermemory_livekit.testing import Reply, ScriptedLLM, ToolCall

from .words import common, content_words, second_person, sentences, stated

__all__ = ["StandInLLM", "reply"]

_ENOUGH = 0.5
"""Least share of a question's words that an answer must have."""

_REMEMBER = re.compile(
    r"^(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?[\s:,]+(?P<what>.+)$", re.IGNORECASE
)
_CORRECT = re.compile(r"^(?:sorry|no|actually|correction|wait)\b[^:?]*:\s*(?P<what>.+)$", re.IGNORECASE)
_FORGET = re.compile(r"^(?:please\s+)?forget(?:\s+(?:about|that))?\s+(?P<what>.+)$", re.IGNORECASE)
_BYE = re.compile(r"\b(?:good)?bye\b", re.IGNORECASE)
_NAME = re.compile(r"\b(?:name is|(?:i am|i'm) called|call me)\s+(?P<name>[^\W\d_][\w'-]*)", re.IGNORECASE)

_SPEAKER = re.compile(r"\[[^\]]*\]\s*(?P<role>Caller|Agent)(?: \([^)]*\))?:\s*")
_DATE = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_ID = re.compile(r"^id=(?P<id>\S+)\s+")

_UNKNOWN = "I am sorry, I do not know that."


class StandInLLM(ScriptedLLM):
    """`reply` as a LiveKit model."""

    def __init__(self) -> None:
        super().__init__(reply)

    @property
    def model(self) -> str:
        return "stand-in (no language model)"

    @property
    def provider(self) -> str:
        return "supermemory_livekit.cli.demo"


def reply(chat_ctx: llm.ChatContext, tools: list[llm.Tool]) -> Reply:
    """What to say or which tool to call next."""
    seen = _Context.read(chat_ctx)
    if seen.question is None:
        return _greeting(seen)
    for sentence in sentences(seen.question):
        if found := _FORGET.match(sentence):
            return _forget(found["what"], seen)
        if found := _CORRECT.match(sentence):
            return _correct(_capital(found["what"]), seen)
        if found := _REMEMBER.match(sentence):
            return _remember(_capital(found["what"]), seen)
        if sentence.endswith("?"):
            return _answer(sentence, seen)
    return "Goodbye." if _BYE.search(seen.question) else "All right."


# -- what the request holds ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Done:
    """A tool call that this turn has made, with its result."""

    name: str
    output: str


@dataclass(frozen=True)
class _Context:
    notes: list[str]
    """Lines of system messages, as they stand."""
    said: list[str]
    """The caller's earlier words in this call."""
    remembered: list[str]
    """Facts this call has saved with the tool."""
    question: str | None
    """The caller's words to reply to; None when the agent is to speak first."""
    done: list[_Done]

    @classmethod
    def read(cls, chat_ctx: llm.ChatContext) -> _Context:
        notes: list[str] = []
        said: list[str] = []
        remembered: list[str] = []
        done: list[_Done] = []
        for item in chat_ctx.items:
            if isinstance(item, llm.ChatMessage):
                text = item.text_content or ""
                if item.role == "user":
                    said.append(text)
                    done = []
                elif item.role != "assistant":
                    notes += [line[2:] for line in text.splitlines() if line.startswith("- ")]
            elif isinstance(item, llm.FunctionCall):
                remembered += [_argument(item, "memory")] if item.name == "remember" else []
            elif isinstance(item, llm.FunctionCallOutput):
                done.append(_Done(item.name, item.output))
        question = said.pop() if said else None
        return cls(notes, said, remembered, question, done)

    def output(self, tool: str) -> str | None:
        return next((step.output for step in reversed(self.done) if step.name == tool), None)

    def statements(self) -> Iterator[str]:
        """What the caller is known to have stated: this call first, then notes, then words of earlier calls."""
        for words in reversed(self.said):
            yield from stated(words)
        facts = [note for note in self.notes if not _SPEAKER.search(note)]
        for fact in facts:
            yield from stated(_DATE.sub("", fact))
        calls = [note for note in self.notes if _SPEAKER.search(note)]
        for call in calls:
            for words in reversed(_callers_words(call)):
                yield from stated(words)


def _argument(call: llm.FunctionCall, name: str) -> str:
    arguments: Any = json.loads(call.arguments)
    return str(arguments.get(name, ""))


def _callers_words(call_text: str) -> list[str]:
    """What the caller, not the agent, says in a piece of call text."""
    parts = _SPEAKER.split(call_text)
    return [words for role, words in zip(parts[1::2], parts[2::2], strict=True) if role == "Caller"]


# -- what to say ---------------------------------------------------------------------------------------------


def _answer(question: str, seen: _Context) -> str:
    wanted = content_words(question)
    best = max(seen.statements(), key=lambda text: common(wanted, text), default="")
    return _capital(second_person(best)) if common(wanted, best) >= _ENOUGH else _UNKNOWN


def _greeting(seen: _Context) -> str:
    statements = list(seen.statements())
    name = next((found["name"] for text in statements if (found := _NAME.search(text))), None)
    if name is None:
        return "Hello, how can I help you?"
    other = next((text for text in statements if not _NAME.search(text)), None)
    return f"Hello {name}, welcome back!" + (f" As I recall, {second_person(other)}" if other else "")


def _remember(fact: str, seen: _Context) -> Reply:
    output = seen.output("remember")
    if output is None:
        return ToolCall("remember", {"memory": fact})
    return (
        f"Noted, {second_person(fact)}"
        if output.startswith("Saved")
        else "I am sorry, I could not save that."
    )


def _correct(fact: str, seen: _Context) -> Reply:
    """Forget what was wrong, if it is known, then save what is right."""
    if seen.output("remember") is None and seen.output("forget") is None:
        found = seen.output("search_memories")
        if found is None:
            return ToolCall("search_memories", {"query": fact})
        if wrong := _match(fact, found):
            return ToolCall("forget", {"memory_id": wrong})
        wanted = content_words(fact)
        for saved in reversed(seen.remembered):
            if common(wanted, saved) >= _ENOUGH:
                return ToolCall("forget", {"memory_text": saved})
    return _remember(fact, seen)


def _forget(what: str, seen: _Context) -> Reply:
    output = seen.output("forget")
    if output is not None:
        return (
            "Done, I have forgotten that."
            if output.startswith("Forgotten")
            else "I am sorry, that did not work."
        )
    found = seen.output("search_memories")
    if found is None:
        return ToolCall("search_memories", {"query": what})
    memory_id = _match(what, found)
    return ToolCall("forget", {"memory_id": memory_id}) if memory_id else "I have no note about that."


def _match(what: str, found: str) -> str | None:
    """The id of the search result that shares most words with `what`."""
    wanted = content_words(what)
    results = [line[2:] for line in found.splitlines() if line.startswith("- ")]
    named = [(_ID.sub("", line), match["id"]) for line in results if (match := _ID.match(line))]
    text, memory_id = max(named, key=lambda result: common(wanted, result[0]), default=("", None))
    return memory_id if common(wanted, text) >= _ENOUGH else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
