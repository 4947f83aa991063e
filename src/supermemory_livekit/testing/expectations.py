"""What a test says of a call: what the agent knew when it replied, and what was stored.

Both halves of an expectation err on the side of failing. `knew` looks at what came from memory alone, so that an
instruction or the caller's own words cannot make it true; `did_not_know` looks at everything but the caller's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from supermemory_livekit.recall.render import FENCE_CLOSE, FENCE_OPEN, neutralise
from supermemory_livekit.transcript import spoken_in

from .llm import ScriptedLLM, SeenContext, SeenItem
from .realtime import RealtimeRequest, ScriptedRealtimeModel
from .store import ScriptedStore

__all__ = ["Expectation", "Request", "expect", "stored"]

Request: TypeAlias = "SeenContext | RealtimeRequest"
"""What a scripted model was shown once."""

_BLOCK = re.compile(f"{re.escape(FENCE_OPEN)}(.*?){re.escape(FENCE_CLOSE)}", re.DOTALL)
_STAMP = re.compile(r"^\[[^\]]*\] ")
_SHOWN = 20
"""Most facts, and most requests, that a failure lists."""


def expect(
    model: ScriptedLLM | ScriptedRealtimeModel | Request,
    *,
    reply: int | Literal["every"] = -1,
    to: str | None = None,
) -> Expectation:
    """Say what a scripted model knew when it was asked for a reply.

    ```python
    expect(model).knew("allergic to peanuts")                 # at its newest reply
    expect(model, reply=0).did_not_know("Ana")                # at its first
    expect(model, to="what can I eat").knew("peanuts")        # at the reply to these words
    expect(model, reply="every").knew_nothing_of("ben", store)
    ```

    Args:
        model: The model, or one of its requests.
        reply: Which of its requests: an index as of a list, or every one. Requests that were given up, as a
            preemptive attempt that was superseded, count with "every" alone. The follow-up of a tool call is a
            request of its own.
        to: Only requests whose last user message holds these words, whatever their case.

    Raises:
        AssertionError: There was no such request.
    """
    if isinstance(model, ScriptedLLM):
        requests: list[Request] = [seen for seen in model.seen if reply == "every" or not seen.cancelled]
    elif isinstance(model, ScriptedRealtimeModel):
        requests = [request for session in model.sessions for request in session.requests]
    else:
        requests = [model]
    if not requests:
        raise AssertionError("the model was not asked for a reply")
    asked = [_last_user(request) for request in requests]
    if to is not None:
        requests = [r for r in requests if to.casefold() in (_last_user(r) or "").casefold()]
        if not requests:
            raise AssertionError(
                f"the model was not asked for a reply to {to!r}, but to:{_list(map(repr, asked))}"
            )
    if reply == "every":
        return Expectation(requests)
    try:
        return Expectation([requests[reply]])
    except IndexError:
        replies = f"{len(requests)} time(s)" + (f" for a reply to {to!r}" if to is not None else "")
        raise AssertionError(f"there is no reply {reply}: the model was asked {replies}") from None


class Expectation:
    """What has to be true of one or several requests to a model. Made by `expect`; methods can be chained."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = list(requests)
        """The requests that it is about, oldest first."""

    def knew(self, *facts: str) -> Expectation:
        """Memory told the model each of these facts: in the block of recalled notes, or by `search_memories`.

        A fact counts as told when a line of memory holds it, whatever their case and spacing. Instructions and
        what was said in the call do not count.
        """
        for request in self.requests:
            known = _facts(request)
            for fact in _wanted(facts):
                if not any(_same(fact) in _same(line) for line in known):
                    raise AssertionError(
                        f"the model did not know {fact!r} {_when(request)}. {_known(known)}{_elsewhere(request, fact)}"
                    )
        return self

    def did_not_know(self, *texts: str) -> Expectation:
        """None of these texts was in anything the model could read, the caller's own words excepted.

        Instructions count, and so do the words of the agent, notes from memory and what tools answered.
        """
        for request in self.requests:
            for text in _wanted(texts):
                for where, shown in _readable(request):
                    if _same(text) in _same(shown):
                        raise AssertionError(
                            f"the model knew {text!r} {_when(request)}, from {where}: {_cut(shown, text)!r}"
                        )
        return self

    def knew_nothing_of(self, tag: str, store: ScriptedStore) -> Expectation:
        """Nothing that `store` keeps of this caller alone was in anything the model could read.

        Looks for facts of the profile, search results, listed and remembered memories, and for what the caller
        said in stored calls (sentences of one word excepted). What is kept of another caller in the same words
        tells nothing, and is left out.

        Raises:
            AssertionError: It was; or the store keeps nothing of this caller alone, so that nothing was tested.
        """
        kept = _kept(store)
        others = {_same(text) for other, texts in kept.items() if other != tag for text in texts}
        own = [text for text in kept.get(tag, []) if _same(text) not in others]
        if not own:
            raise AssertionError(f"the store keeps nothing of {tag!r} alone, so nothing of it could be known")
        return self.did_not_know(*own)

    def had_one_block(self) -> Expectation:
        """Memory stood in the context exactly once, as one block of notes: none of an earlier turn was left."""
        return self._had(1)

    def had_no_block(self) -> Expectation:
        """No block of notes was in the context: nothing was recalled."""
        return self._had(0)

    def _had(self, count: int) -> Expectation:
        for request in self.requests:
            found = len(_blocks(request))
            if found != count:
                raise AssertionError(
                    f"the model had {found} block(s) of notes {_when(request)}, not {count}. {_known(_facts(request))}"
                )
        return self


def stored(store: ScriptedStore, tag: str, *, session_id: str | None = None) -> list[str]:
    """What is stored of the calls of one caller: `"Caller: ..."` and `"Agent: ..."`, in order, without times.

    `session_id` limits it to one call. Turns are written after each reply and when the call ends: close the session and
    wait for `memory.aclose()` first.

    Raises:
        TypeError: `store` is no `ScriptedStore`, such as the path that the fixture `supermemory_local` is.
    """
    if not isinstance(store, ScriptedStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            "stored() reads a ScriptedStore, such as the fixture supermemory_store, and was given a "
            f"{type(store).__name__}; "
            "of a real service, supermemory_local too, ask a memory: await memory.search(...)"
        )
    documents = [
        text
        for (owner, custom_id), text in store.documents.items()
        if owner == tag and session_id in (None, custom_id.removeprefix("lk-"))
    ]
    return [_STAMP.sub("", line) for text in documents for line in text.splitlines()]


# -- what a request holds ------------------------------------------------------------------------------------


def _readable(request: Request) -> list[tuple[str, str]]:
    """Where a text stands and the text, for all that did not come from the caller.

    Arguments of function calls are the model's own words, made of what else is here.
    """
    texts: list[tuple[str, str]] = []
    if isinstance(request, RealtimeRequest):
        texts += [
            ("the instructions", text) for text in (request.instructions, request.extra_instructions) if text
        ]
    return texts + [
        (_where(item), item.text)
        for item in request.items
        if item.role != "user" and item.type != "function_call"
    ]


def _where(item: SeenItem) -> str:
    if item.type == "function_call_output":
        return f"what the tool {item.name} answered"
    return f"a message of role {item.role!r}"


def _blocks(request: Request) -> list[str]:
    return [block for _, text in _readable(request) for block in _BLOCK.findall(text)]


def _facts(request: Request) -> list[str]:
    """The lines that came from memory."""
    answers = [
        item.text
        for item in request.items
        if item.type == "function_call_output" and item.name == "search_memories"
    ]
    lines = [line for text in [*_blocks(request), *answers] for line in text.splitlines()]
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def _last_user(request: Request) -> str | None:
    return next((item.text for item in reversed(request.items) if item.role == "user"), None)


# -- what a store keeps --------------------------------------------------------------------------------------


def _kept(store: ScriptedStore) -> dict[str, list[str]]:
    """By container tag, the facts and the words of the caller that this store keeps."""
    kept: dict[str, list[str]] = {}

    def keep(tag: str, texts: Iterable[str]) -> None:
        kept.setdefault(tag, []).extend(text for text in texts if text.strip())

    for tag, profile in store.profiles.items():
        keep(tag, [*profile.static, *profile.dynamic])
    for tag, hits in store.hits.items():
        keep(tag, [hit.text for hit in hits])
    for tag, memories in store.stored.items():
        keep(tag, [memory.text for memory in memories])
    for tag in store.tags:
        keep(tag, store.remembered(tag))
    for (tag, _), text in store.documents.items():
        for line in text.splitlines():
            if _STAMP.sub("", line).startswith("Caller"):
                keep(tag, [words for words in spoken_in(line) if " " in words])
    return kept


# -- messages ------------------------------------------------------------------------------------------------


def _same(text: str) -> str:
    """What two ways to write one text have in common. The model is shown the neutralised text."""
    # Line by line, since a text is neutralised up to a certain length only.
    return " ".join(filter(None, map(neutralise, text.splitlines()))).casefold()


def _wanted(texts: Sequence[str]) -> Sequence[str]:
    if not texts or not all(_same(text) for text in texts):
        raise ValueError("say what to look for; a blank text is in everything")
    return texts


def _when(request: Request) -> str:
    said = _last_user(request)
    return "before the caller said anything" if said is None else f"when it replied to {said!r}"


def _known(facts: Sequence[str]) -> str:
    return f"Memory told it:{_list(facts)}" if facts else "Memory told it nothing."


def _elsewhere(request: Request, fact: str) -> str:
    """A hint for those who see the text in the context all the same."""
    if any(item.role == "user" and _same(fact) in _same(item.text) for item in request.items):
        return "\nThe caller said it in this call, which is not memory."
    for where, text in _readable(request):
        if _same(fact) in _same(text):
            return f"\nIt stands in {where}, which is not memory."
    return ""


def _list(texts: Iterable[str]) -> str:
    lines = [f"\n  - {text}" for text in texts]
    more = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "".join(lines[:_SHOWN]) + more


def _cut(shown: str, text: str) -> str:
    """The line of `shown` that holds `text`, or its beginning."""
    return next((line for line in shown.splitlines() if _same(text) in _same(line)), shown[:200])
