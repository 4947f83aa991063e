"""What the model can do with the memory itself: search it, remember one fact, forget one fact.

Each operation returns the text the model is shown. It never raises into a call, keeps its own deadline, and
says plainly when a fact is NOT saved or NOT forgotten, so that the agent promises nothing that is not so.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, cast

import anyio
from livekit.agents import RunContext, llm

from supermemory_livekit.errors import (
    AccessDenied,
    CallerErased,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
)
from supermemory_livekit.observability.observer import Observer
from supermemory_livekit.observability.spans import Operation, memory_span
from supermemory_livekit.params import InputParams
from supermemory_livekit.recall.render import strip_fenced, tool_text
from supermemory_livekit.store import Dreaming, Hit, MemoryStore
from supermemory_livekit.telemetry import OutageLog, Stats, describe, logger
from supermemory_livekit.transcript import fold

__all__ = ["MemoryTools"]

_Tool = Literal["search_memories", "remember", "forget"]

_SEARCH_SECONDS = 5.0
_WRITE_SECONDS = 10.0
_GRACE_SECONDS = 0.5
"""How late a store may be with its own deadline: a tool that never returns keeps a session from closing."""
_FORGET_PAUSES = (0.5, 1.5)
"""Seconds between the attempts to forget a fact that was saved moments ago and is still being processed."""
_QUERY_CHARACTERS = 1_000
_FACT_CHARACTERS = 10_000
"""The longest memory the API takes."""
_NEAR_MATCHES = 5
_RAW_SHARE = 2
"""Search results kept for the raw text of calls when memories alone would fill the list."""

_SEARCH_FAILED = "The memory could NOT be searched"
_SEARCH_ADVICE = "This does not mean that nothing is known about the caller."
_NOT_SAVED = "NOT saved"
_SAVE_ADVICE = "Do not tell the caller that it is saved."
_MEANWHILE = f"{_NOT_SAVED}: the caller, or what they allow, has changed meanwhile. {_SAVE_ADVICE}"
_NOT_FORGOTTEN = "NOT forgotten"
_FORGET_ADVICE = "Do not tell the caller that it is forgotten."
_UNREDACTED = "it holds what this agent may not pass on, or that could not be checked"
_BY_ID_ALONE = (
    "this is off the record, so nothing is looked for by its words; give an id that search_memories showed"
)
_SOMEONE_ELSE = "Another caller is on the line since this was asked, so the result is not shown."
_FORGOTTEN = "Forgotten."
_KEPT_OUT = (
    " What the caller said in this turn is kept out of the memory; if it held anything else that is to be kept, save"
    " that with remember."
)


_NO_CONTEXT = cast("RunContext[Any]", object())
"""Of a tool that the program calls itself. Not None: LiveKit would take the parameter for one that the model fills."""


@dataclass(frozen=True)
class _Outcome:
    """How forgetting a fact ended."""

    text: str
    """What the model is told."""
    may_be_gone: bool = False
    """Whether the fact is gone, or may be: what was said to have it forgotten must not bring it back then."""


@dataclass(frozen=True)
class _Receipt:
    """A fact remembered in this call."""

    text: str
    document: str | None


class MemoryTools:
    """The three memory tools of one call.

    `tag` tells the container tag bound at this moment, None before any bind; an operation works for the tag
    that it finds when it starts. `refusal` tells why it may not be done now, as the end of a sentence; None if it may.
    `redact` is what every text goes through first; None for one that may not be used. `forgetting` is called before
    something is forgotten, `kept_out` when it was, or may have been: whether the turn that asked for it is kept out of
    the memory.
    `changed` is called after whatever may have changed what the service keeps; in its
    place `remembered` with text and receipt of a fact that was stored, `forgot` with id and text of one that is gone,
    as far as they are known.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        tag: Callable[[], str | None],
        params: InputParams,
        changed: Callable[[], None],
        remembered: Callable[[str, str | None], None] | None = None,
        forgot: Callable[[str | None, str | None], None] | None = None,
        refusal: Callable[[Operation], str | None] = lambda operation: None,
        redact: Callable[[str], Awaitable[str | None]] | None = None,
        forgetting: Callable[[], None] = lambda: None,
        kept_out: Callable[[], bool] = lambda: False,
        observer: Observer | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._store = store
        self._tag = tag
        self._params = params
        self._changed = changed
        self._observer = observer or Observer(Stats())

        def something_changed(_: str | None, __: str | None) -> None:
            changed()

        self._remembered = remembered or something_changed
        self._forgot = forgot or something_changed
        self._refusal = refusal
        self._redact = redact
        self._forgetting = forgetting
        self._kept_out = kept_out
        self._now = now
        self._instant = True
        """False once the organisation has turned out to have no balance for instant processing."""
        self._receipts: dict[str, dict[str, _Receipt]] = defaultdict(dict)
        """By container tag, so that a rebind never crosses callers, and by the fact's comparable text."""
        self._shown: dict[str, str] = {}
        """Texts of memories by the ids they were shown with, so that a forgotten one is known by its text too."""
        self._gone: dict[str, set[str]] = defaultdict(set)
        """By container tag, ids and comparable texts of what was forgotten in this call, or may have been."""
        self._calls: dict[str, str] = {}
        """By the id of the model's call of a tool, the container tag it was answered for."""
        self._outages: dict[_Tool, OutageLog] = {}
        self._said_unbound = False
        self._tools = self._make_tools()

    def function_tools(self) -> list[llm.Tool | llm.Toolset]:
        """The tools for `Agent(tools=…)` or `AgentSession(tools=…)`: the same objects at every call."""
        return list(self._tools)

    async def search(self, query: str, *, call_id: str | None = None) -> str:
        """What is stored about the caller and bears on `query`, one line each; or why there is nothing."""
        return await self._run(
            "search_memories",
            "search_memory",
            lambda tag: self._search(tag, query),
            seconds=_SEARCH_SECONDS,
            failure=_SEARCH_FAILED,
            advice=_SEARCH_ADVICE,
            call_id=call_id,
        )

    async def remember(self, text: str, *, call_id: str | None = None) -> str:
        """Store one fact of at most 10,000 characters. Says `Saved` or `NOT saved`."""
        return await self._run(
            "remember",
            "create_memory",
            lambda tag: self._remember(tag, text),
            seconds=_WRITE_SECONDS,
            failure=_NOT_SAVED,
            advice=_SAVE_ADVICE,
            call_id=call_id,
        )

    async def forget(
        self, memory_id: str | None = None, memory_text: str | None = None, *, call_id: str | None = None
    ) -> str:
        """Forget one fact by its id, or else by its exact text. Says `Forgotten` or `NOT forgotten`."""
        return await self._run(
            "forget",
            "delete_memory",
            lambda tag: self._forget_and_keep_out(tag, _clean_id(memory_id), _clean(memory_text)),
            seconds=_WRITE_SECONDS,
            failure=_NOT_FORGOTTEN,
            advice=_FORGET_ADVICE,
            call_id=call_id,
        )

    def calls_for_others(self, tags: Collection[str]) -> frozenset[str]:
        """Ids of the model's calls that were answered for none of these container tags."""
        return frozenset(call_id for call_id, tag in self._calls.items() if tag not in tags)

    def erased(self, tag: str) -> None:
        """The caller was erased: drop what is noted of them."""
        self._receipts.pop(tag, None)
        self._gone.pop(tag, None)
        self._shown.clear()

    # -- the frame that every operation runs in

    async def _run(
        self,
        tool: _Tool,
        operation: Operation,
        body: Callable[[str], Awaitable[str]],
        *,
        seconds: float,
        failure: str,
        advice: str,
        call_id: str | None,
    ) -> str:
        """`call_id`: of the model's call; None when the program asks."""
        if (reason := self._refusal(operation)) is not None:
            return f"{failure}: {reason}. {advice}"
        tag = self._tag()
        if not tag:
            self._say_unbound()
            return f"{failure}: it is not known yet who the caller is. {advice}"
        if call_id is not None:
            self._calls[call_id] = tag
        outage = self._outages.get(tool)
        if outage is None:
            outage = self._outages[tool] = self._observer.outage_log(tool, f"The tool {tool}")
        began = asyncio.get_running_loop().time()
        try:
            with memory_span(operation, tool):
                answer = await _within(
                    seconds + _GRACE_SECONDS, body(tag), write=operation != "search_memory"
                )
        except ServiceError as error:
            self._observer.tool_used(tool, asyncio.get_running_loop().time() - began, error)
            kept_out = ""
            if error.uncertain:
                kept_out = self._may_have_changed(operation)
            outage.failed(error, "the model is told so")
            unclear = ", as far as is known" if error.uncertain else ""
            return f"{failure}{unclear}: {_reason(error)}. {advice}{kept_out}"
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end a call either
            self._observer.tool_used(tool, asyncio.get_running_loop().time() - began, error)
            logger.warning("The tool %s fails: %s; the model is told so", tool, describe(error))
            kept_out = self._may_have_changed(operation)
            return f"{failure}: the memory does not work at the moment. {advice}{kept_out}"
        except asyncio.CancelledError:
            if operation == "delete_memory":
                self._kept_out()
            raise
        self._observer.tool_used(tool, asyncio.get_running_loop().time() - began, None)
        outage.worked()
        return answer

    def _may_have_changed(self, operation: Operation) -> str:
        """It is not known what the service has done. What the model is told besides."""
        if operation == "search_memory":
            return ""
        if operation != "delete_memory":
            self._changed()
            return ""
        self._forgot(None, None)
        return _KEPT_OUT if self._kept_out() else ""

    def _say_unbound(self) -> None:
        if not self._said_unbound:
            self._said_unbound = True
            logger.warning("A memory tool was used before bind: no container tag, so nothing is sent")

    # -- search

    async def _search(self, tag: str, query: str) -> str:
        words = _clean(query)
        if not words:
            return "Nothing was searched: give a question or a few key words."
        words = await self._redacted(words) or ""
        if not words:
            return f"Nothing was searched: {_UNREDACTED}."
        if (refused := self._no_longer(tag, "search_memory")) is not None:
            return refused
        hits = await self._find(tag, words[:_QUERY_CHARACTERS])
        if (refused := self._no_longer(tag, "search_memory")) is not None:
            return refused
        if not hits:
            return "Nothing stored about the caller matches this. Other words may."
        return self._show(hits)

    def _no_longer(self, tag: str, operation: Operation) -> str | None:
        """What the model is told when the caller, or what they allow, has changed while the tool was at work."""
        if self._tag() != tag:
            return _SOMEONE_ELSE
        reason = self._refusal(operation)
        return None if reason is None else f"Nothing was done: {reason}."

    def _show(self, hits: Sequence[Hit]) -> str:
        self._shown.update((hit.memory_id, hit.text) for hit in hits if hit.memory_id is not None)
        return tool_text(hits, self._now())

    async def _find(self, tag: str, query: str) -> list[Hit]:
        """Memories and the raw text of calls; neither may hide the other, however much there is of it."""
        limit = self._params.search_limit
        deadline = _Deadline(_SEARCH_SECONDS)
        # More than is shown: many memories would otherwise hide every line of a recent call.
        hits = await self._store.search(
            tag,
            query,
            limit=min(100, 3 * limit),
            threshold=self._params.search_threshold,
            mode="hybrid",
            timeout=deadline.left(),
        )
        if not any(hit.memory_id for hit in hits):
            hits = [*await self._find_memories(tag, query, limit, deadline), *hits]
        return _balanced(hits, limit)

    async def _find_memories(self, tag: str, query: str, limit: int, deadline: _Deadline) -> list[Hit]:
        """A second search for memories alone: what it lacks does not spoil the first one's results."""
        try:
            return await self._store.search(
                tag,
                query,
                limit=limit,
                threshold=self._params.search_threshold,
                mode="memories",
                timeout=deadline.left(),
            )
        except ServiceError as error:
            logger.debug("The second search of search_memories fails: %s", describe(error))
            return []

    # -- remember

    async def _remember(self, tag: str, text: str) -> str:
        asked = _clean(text)
        if not asked:
            return f"{_NOT_SAVED}: there is no fact in this text."
        fact = await self._redacted(asked)
        if fact is None:
            return f"{_NOT_SAVED}: {_UNREDACTED}. {_SAVE_ADVICE}"
        if self._no_longer(tag, "create_memory") is not None:
            return _MEANWHILE
        if len(fact) > _FACT_CHARACTERS:
            return (
                f"{_NOT_SAVED}: the text is longer than {_FACT_CHARACTERS} characters."
                " Save one short fact at a time."
            )
        stored = await self._store_fact(tag, fact)
        if stored is None:
            return _MEANWHILE
        document, dreaming = stored
        self._receipts[tag][_comparable(fact)] = _Receipt(fact, document)
        self._remembered(fact, document)
        if fact != asked:
            return f"Saved without what this agent may not store, as: {fact}"
        if dreaming == "instant":
            return "Saved. It will be remembered in later calls."
        return "Saved. It can take up to half an hour until it is recalled."

    async def _store_fact(self, tag: str, fact: str) -> tuple[str | None, Dreaming] | None:
        """The document and how it is processed; None when it may not be stored any more."""
        deadline = _Deadline(_WRITE_SECONDS)
        if self._instant:
            try:
                document = await self._store.remember(tag, fact, dreaming="instant", timeout=deadline.left())
            except PaymentRequired:
                self._instant = False
                if self._tag() == tag and self._refusal("create_memory") is not None:
                    return None
            else:
                return document, "instant"
        return await self._store.remember(tag, fact, dreaming="dynamic", timeout=deadline.left()), "dynamic"

    # -- forget

    async def _forget_and_keep_out(self, tag: str, memory_id: str, text: str) -> str:
        # Before anything is awaited: what the caller said to have it forgotten must not be on its way by then.
        self._forgetting()
        redacted_text = await self._redacted(text) or ""
        redacted_id = memory_id
        if memory_id not in self._shown and await self._redacted(memory_id) != memory_id:
            redacted_id = ""
        if (text or memory_id) and not (redacted_text or redacted_id):
            return f"{_NOT_FORGOTTEN}: {_UNREDACTED}. Call search_memories and use an id that it shows."
        if self._refusal("search_memory") is not None:
            # An id names what is stored; anything else may be what was said.
            redacted_text = ""
            if redacted_id not in self._shown and not _ID.fullmatch(redacted_id):
                return f"{_NOT_FORGOTTEN}: {_BY_ID_ALONE}."
        try:
            outcome = await self._forget(tag, redacted_id, redacted_text)
        except BaseException as error:
            if not isinstance(error, ServiceError) or error.uncertain:
                self._note_gone(tag, redacted_id, redacted_text)
            raise
        if not outcome.may_be_gone:
            return outcome.text
        self._note_gone(tag, redacted_id, redacted_text)
        return f"{outcome.text}{_KEPT_OUT}" if self._kept_out() else outcome.text

    def _note_gone(self, tag: str, memory_id: str, text: str) -> None:
        known = (memory_id, _comparable(text), _comparable(self._shown.get(memory_id, "")))
        self._gone[tag].update(name for name in known if name)

    def _is_known(self, tag: str, memory_id: str, text: str) -> bool:
        """Whether there was such a fact in this call: what the service does not find now is gone then."""
        gone = self._gone[tag]
        if memory_id and (memory_id in gone or memory_id in self._shown):
            return True
        wanted = _comparable(text)
        return bool(wanted) and (wanted in gone or wanted in map(_comparable, self._shown.values()))

    async def _redacted(self, text: str) -> str | None:
        if self._redact is None or not text:
            return text
        redacted = await self._redact(text)
        return None if redacted is None else _clean(redacted) or None

    async def _forget(self, tag: str, memory_id: str, text: str) -> _Outcome:
        if not memory_id and not text:
            return _Outcome(
                f"{_NOT_FORGOTTEN}: give the id of a memory from search_memories, or its exact text."
            )
        deadline = _Deadline(_WRITE_SECONDS)
        if memory_id:
            try:
                return await self._forget_by_id(tag, memory_id, deadline)
            except NotFound:
                if self._is_known(tag, memory_id, text):
                    return self._gone_already(memory_id, text)
                if not text:
                    return _Outcome(
                        f"{_NOT_FORGOTTEN}: there is no memory with this id."
                        " Call search_memories and use an id that it shows."
                    )
        receipt = self._receipts[tag].get(_comparable(text))
        if receipt:
            return await self._forget_receipt(tag, receipt, deadline)
        return await self._forget_by_text(tag, text, deadline)

    async def _forget_by_id(self, tag: str, memory_id: str, deadline: _Deadline) -> _Outcome:
        try:
            forgotten = await self._store.forget(tag, memory_id=memory_id, timeout=deadline.left())
        except Conflict:
            return self._forgotten_or_busy()
        return self._done(memory_id=memory_id) if forgotten else _nothing_forgotten()

    async def _forget_by_text(self, tag: str, text: str, deadline: _Deadline) -> _Outcome:
        try:
            forgotten = await self._store.forget(tag, text=text, timeout=deadline.left())
        except Conflict:
            return self._forgotten_or_busy()
        except NotFound:
            return await self._forget_same_or_show_near(tag, text, deadline)
        return self._done(text=text) if forgotten else _nothing_forgotten()

    async def _forget_same_or_show_near(self, tag: str, text: str, deadline: _Deadline) -> _Outcome:
        """Only what reads the same is forgotten. What is merely close is shown, for the caller to say."""
        hits = await self._near(tag, text, deadline)
        same = [hit.memory_id for hit in hits if hit.memory_id and _comparable(hit.text) == _comparable(text)]
        if len(same) == 1:
            try:
                return await self._forget_by_id(tag, same[0], deadline)
            except NotFound:
                return self._gone_already(same[0], text)
        if not same and self._is_known(tag, "", text):
            return self._gone_already(None, text)
        if self._tag() != tag:
            return _Outcome(f"{_NOT_FORGOTTEN}: no stored memory has exactly this text. {_SOMEONE_ELSE}")
        said = f"{_NOT_FORGOTTEN}: no stored memory has exactly this text, and nothing was deleted."
        if hits:
            return _Outcome(
                f"{said} These come close; if the caller means one of them, call forget with its id:\n"
                f"{self._show(hits)}"
            )
        if self._receipts[tag]:
            return _Outcome(
                f"{said} What was saved moments ago may still be being saved; try again in a minute."
            )
        return _Outcome(said)

    async def _near(self, tag: str, text: str, deadline: _Deadline) -> list[Hit]:
        if self._refusal("search_memory") is not None:  # it went off the record meanwhile
            return []
        try:
            return await self._store.search(
                tag,
                text[:_QUERY_CHARACTERS],
                limit=_NEAR_MATCHES,
                threshold=self._params.search_threshold,
                mode="memories",
                timeout=min(_SEARCH_SECONDS, deadline.left()),
            )
        except ServiceError as error:
            logger.debug("The search for near matches of forget fails: %s", describe(error))
            return []

    async def _forget_receipt(self, tag: str, receipt: _Receipt, deadline: _Deadline) -> _Outcome:
        """Forget a fact saved in this call, which the service may not have made a memory of yet.

        Its document goes too: raw-text search would still find the fact there.
        """
        may_be_gone = False
        for pause in (*_FORGET_PAUSES, None):
            try:
                forgotten = await self._store.forget(tag, text=receipt.text, timeout=deadline.left())
            except NotFound:
                forgotten = False
            except Conflict:
                forgotten, may_be_gone = False, True
            if forgotten:
                await self._deleted_if_possible(tag, receipt, deadline)
                break
            if await self._deleted(tag, receipt, deadline):
                break
            if pause is None or deadline.left() <= pause:
                return _Outcome(
                    f"{_NOT_FORGOTTEN} yet: this fact is still being saved. Try again in a minute.",
                    may_be_gone,
                )
            await asyncio.sleep(pause)
        self._receipts[tag].pop(_comparable(receipt.text), None)
        return self._done(text=receipt.text)

    async def _deleted(self, tag: str, receipt: _Receipt, deadline: _Deadline) -> bool:
        if receipt.document is None:
            return False
        try:
            await self._store.unremember(tag, receipt.document, timeout=deadline.left())
        except (NotFound, Conflict, NotImplementedError):
            return False
        return True

    async def _deleted_if_possible(self, tag: str, receipt: _Receipt, deadline: _Deadline) -> None:
        try:
            await self._deleted(tag, receipt, deadline)
        except ServiceError as error:
            logger.warning("The tool forget left the document of a forgotten fact: %s", describe(error))

    def _done(self, memory_id: str | None = None, text: str | None = None) -> _Outcome:
        self._forgot(memory_id, text or self._shown.get(memory_id or ""))
        return _Outcome(_FORGOTTEN, may_be_gone=True)

    def _gone_already(self, memory_id: str | None, text: str | None) -> _Outcome:
        """The service does not find what was there in this call: an earlier attempt, or another, has forgotten it."""
        self._forgot(memory_id or None, text or self._shown.get(memory_id or ""))
        return _Outcome("Nothing was deleted now: this memory is not there any more.", may_be_gone=True)

    def _forgotten_or_busy(self) -> _Outcome:
        self._forgot(None, None)
        return _Outcome(
            "Nothing was deleted now: the service says that this memory is already forgotten, or still being"
            " saved. If it comes up again, try again in a minute.",
            may_be_gone=True,
        )

    # -- what the model reads

    def _make_tools(self) -> tuple[llm.Tool | llm.Toolset, ...]:
        @llm.function_tool
        async def search_memories(query: str, context: RunContext[Any] = _NO_CONTEXT) -> str:
            """Look up what is stored about this caller from earlier calls and from this one: facts,
            preferences, orders, appointments, and the words of past calls. What was recalled already is in
            your context; use this when that does not answer the caller, before you say that you do not
            know. Each result is one line; a result that can be forgotten shows its id.

            Args:
                query: What to look for: a short question or key words, with the names and things that matter,
                    for example "dentist appointment" or "which pizza did the caller order".
            """
            return await self.search(query, call_id=_call_id(context))

        @llm.function_tool
        async def remember(memory: str, context: RunContext[Any] = _NO_CONTEXT) -> str:
            """Save one fact about this caller for later calls. Use it when the caller asks you to remember
            something, or states a lasting fact, preference or correction. The conversation is stored
            anyway, so save no small talk and no summaries. The result says whether it is saved; when it is
            NOT saved, tell the caller.

            Args:
                memory: One fact in a short sentence that is clear without the conversation, for example
                    "Is allergic to peanuts" or "Moved from Lisbon to Porto in May 2026".
            """
            return await self.remember(memory, call_id=_call_id(context))

        @llm.function_tool
        async def forget(
            memory_id: str | None = None,
            memory_text: str | None = None,
            context: RunContext[Any] = _NO_CONTEXT,
        ) -> str:
            """Forget one stored fact about this caller, when the caller asks for it. Give its id if you
            have it: search_memories shows it. Otherwise give the exact text of the fact. When no fact has
            exactly that text, nothing is deleted and close ones are shown with their ids: ask the caller
            which one is meant. The result says whether it is forgotten; when it is NOT forgotten, tell the
            caller.

            Args:
                memory_id: Id of the memory, exactly as search_memories shows it.
                memory_text: The exact text of the memory, when its id is not known.
            """
            return await self.forget(memory_id, memory_text, call_id=_call_id(context))

        return (search_memories, remember, forget)


def _call_id(context: RunContext[Any]) -> str | None:
    """Id of the model's call that this tool answers; None when the program called it."""
    return context.function_call.call_id if context is not _NO_CONTEXT else None


async def _within(seconds: float, answer: Awaitable[str], *, write: bool) -> str:
    try:
        with anyio.fail_after(seconds):
            return await answer
    except TimeoutError:
        raise ServiceTimeout("the store kept no deadline", uncertain=write) from None


class _Deadline:
    """Seconds that several requests of one operation share, on the loop's clock."""

    def __init__(self, seconds: float) -> None:
        self._end = asyncio.get_running_loop().time() + seconds

    def left(self) -> float:
        return max(0.0, self._end - asyncio.get_running_loop().time())


def _balanced(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The best `limit` hits, of which the last few are raw call text if memories alone would fill them."""
    best = list(hits[:limit])
    if limit <= _RAW_SHARE or any(hit.memory_id is None for hit in best):
        return best
    raw = [hit for hit in hits[limit:] if hit.memory_id is None][:_RAW_SHARE]
    return [*best[: limit - len(raw)], *raw]


def _clean(text: object) -> str:
    """One line without recalled notes: what the model repeats of our own block is no fact of its own.

    Without control characters either, since a redactor has to see what is sent in the end.
    """
    return fold(strip_fenced(text)) if isinstance(text, str) else ""


def _clean_id(memory_id: object) -> str:
    return memory_id.strip().removeprefix("id=").strip("[]()\"'` ") if isinstance(memory_id, str) else ""


_ID = re.compile(r"[\w.:-]{1,128}")
"""What an id may look like, and a sentence does not."""

_DATE_PREFIX = re.compile(r"^\[[^\]]*\d{4}-\d{2}-\d{2}[^\]]*\]\s*")


def _comparable(text: str) -> str:
    """The same for texts that read the same: case, blanks, a leading date and a final stop do not count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_DATE_PREFIX.sub("", folded).split()).rstrip(".!")


def _nothing_forgotten() -> _Outcome:
    return _Outcome(f"{_NOT_FORGOTTEN}: the memory service reports that it forgot nothing.")


def _reason(error: ServiceError) -> str:
    if isinstance(error, ServiceTimeout):
        return "the memory service gave no answer in time"
    if isinstance(error, PaymentRequired):
        return "the account of this agent has no balance left for it"
    if isinstance(error, AccessDenied):
        return "this agent has no access to the memory"
    if isinstance(error, CallerErased):
        return "the caller's memory was erased, and nothing of this call is stored any more"
    if isinstance(error, RateLimited):
        return "the memory service is busy"
    if isinstance(error, (RequestRejected, NotFound, Conflict)):
        return "the memory service did not accept it"
    if error.uncertain:
        return "the memory service gave no clear answer"
    return "the memory service is not available"
