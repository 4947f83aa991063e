"""A `MemoryStore` in memory that does what a test tells it to."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, TypeVar, cast, get_args

from typing_extensions import assert_never

from supermemory_livekit.errors import Conflict, NotFound, PaymentRequired, ServiceTimeout
from supermemory_livekit.store import (
    DeletedTag,
    DocumentPage,
    Dreaming,
    Hit,
    MemoryPage,
    MemoryStore,
    Profile,
    SearchMode,
    StoredCall,
    StoredMemory,
)

from .script import Answer, Fail, Hang, Step, UnexpectedCall, Work

__all__ = ["Operation", "ScriptedStore", "StoreCall"]

T = TypeVar("T")

Operation = Literal[
    "profile",
    "search",
    "append",
    "read",
    "remember",
    "unremember",
    "forget",
    "memories",
    "latest_calls",
    "list_documents",
    "delete_documents",
    "delete_tag",
]
"""The operations of a `MemoryStore`."""

_WRITES: frozenset[str] = frozenset(
    {"append", "remember", "unremember", "forget", "delete_documents", "delete_tag"}
)


@dataclass
class StoreCall:
    """One call that a `ScriptedStore` received."""

    operation: Operation
    tag: str
    arguments: dict[str, Any]
    """Everything else that was passed, by parameter name."""
    started: float
    """Loop time in seconds."""
    ended: float | None = None
    """Loop time in seconds; None while the call runs."""
    error: BaseException | None = None
    """What the call raised, `CancelledError` included."""


@dataclass
class _Memory:
    id: str
    text: str
    document: str
    forgotten: bool = False


@dataclass
class _Tag:
    """What the model of a service keeps for one container tag."""

    documents: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    ids: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    memories: list[_Memory] = field(default_factory=lambda: list[_Memory]())


class ScriptedStore(MemoryStore):
    """Keeps documents and facts in memory, records every call, and fails on demand.

    Without a script it behaves like a service that works at once:

    - `profile` answers `profiles[tag]`, to which `knows` adds; an empty profile when there is none;
    - `search` answers from `hits[tag]`, to which `finds` adds, and from remembered facts, best first;
    - `append` joins deltas with a line break, see `document`; `read` returns the whole;
    - `remember` keeps a fact with a memory id of its own, `forget` and `unremember` take it away again;
    - `list_documents` lists what was appended and remembered, `delete_documents` deletes it, `delete_tag` all of a tag;
    - `memories` lists remembered facts, `stored[tag]` and the memories of `hits[tag]`, `latest_calls` the documents,
      whose memories are not made yet unless their custom id is in `processed`.

    `script` says what the next calls of one operation do instead, `always` what every later one does, and
    `forbid` that an operation must not be called at all. Deadlines are kept on the loop's clock, so a virtual
    clock makes them instant. A blank container tag is always a fault.

    Used as a context manager it calls `verify()` at the end.
    """

    def __init__(self, *, instant: bool = True, lists: bool = True) -> None:
        """`instant=False` models an organisation without balance: `dreaming="instant"` is answered 402.
        `lists=False` models a client that can list neither memories nor documents.
        """
        self.instant = instant
        self.lists = lists
        self.profiles: dict[str, Profile] = {}
        self.hits: dict[str, list[Hit]] = {}
        self.stored: dict[str, list[StoredMemory]] = {}
        """Memories that are listed besides, newest first."""
        self.processed: set[str] = set()
        """Custom ids of the documents that the service has made memories of."""
        self.calls: list[StoreCall] = []
        self.closed = 0
        """How often `aclose` was called."""
        self._tags: dict[str, _Tag] = defaultdict(_Tag)
        self._scripts: dict[Operation, deque[Step]] = defaultdict(deque)
        self._rules: dict[Operation, Step] = {}
        self._forbidden: set[Operation] = set()
        self._faults: list[str] = []
        self._ids = 0

    # What a test says and sees

    def knows(self, tag: str, *facts: str) -> ScriptedStore:
        """Add facts to the caller's profile, as known from earlier calls. Returns the store, for chaining."""
        before = self.profiles.get(tag, Profile())
        self.profiles[tag] = replace(before, static=(*before.static, *facts))
        return self

    def finds(self, tag: str, *texts: str) -> ScriptedStore:
        """Add memories that every search for this caller finds, whatever it asks for. Returns the store.

        They are listed as well, so that the mirror (`InputParams(mirror=True)`) holds them. It searches by itself: a
        call finds there what has to do with the words said.
        """
        self.hits.setdefault(tag, []).extend(Hit(text, 0.9, self._new_id("mem")) for text in texts)
        return self

    def script(self, operation: Operation, *steps: Step) -> ScriptedStore:
        """Add steps for the next calls of `operation`, one each. Returns the store, for chaining."""
        self._scripts[operation].extend(steps)
        return self

    def always(self, operation: Operation, step: Step | None) -> ScriptedStore:
        """What calls of `operation` do once its script is used up; None is the working service again."""
        if step is None:
            self._rules.pop(operation, None)
        else:
            self._rules[operation] = step
        return self

    def breaks(self, step: Step) -> ScriptedStore:
        """Let every operation meet `step` from now on, as `always` does for one. Returns the store, for chaining."""
        for operation in get_args(Operation):
            self.always(operation, step)
        return self

    def mends(self) -> ScriptedStore:
        """Take `breaks` back, and every `always`: the service works again. Returns the store, for chaining."""
        self._rules.clear()
        return self

    def forbid(self, *operations: Operation) -> ScriptedStore:
        """Make any further call of these operations a fault."""
        self._forbidden.update(operations)
        return self

    def allow(self, *operations: Operation) -> ScriptedStore:
        """Take `forbid` back."""
        self._forbidden.difference_update(operations)
        return self

    def called(self, *operations: Operation) -> list[StoreCall]:
        """The calls of these operations so far, in the order they were started."""
        return [call for call in self.calls if call.operation in operations]

    def document(self, tag: str, custom_id: str) -> str | None:
        """The stored text of one document; None when there is none."""
        return self._tags[tag].documents.get(custom_id) if tag in self._tags else None

    @property
    def documents(self) -> dict[tuple[str, str], str]:
        """All appended documents by container tag and custom id."""
        return {
            (tag, custom_id): text
            for tag, kept in self._tags.items()
            for custom_id, text in kept.documents.items()
        }

    def remembered(self, tag: str) -> list[str]:
        """The facts stored by `remember` and not forgotten, oldest first."""
        return [m.text for m in self._tags[tag].memories if not m.forgotten] if tag in self._tags else []

    @property
    def tags(self) -> set[str]:
        """Every container tag that any call named."""
        return {call.tag for call in self.calls}

    def verify(self) -> None:
        """Raise `UnexpectedCall` when a call was not allowed or a scripted step was not used."""
        unused = [
            f"{len(steps)} scripted step(s) of {operation!r} were not used"
            for operation, steps in self._scripts.items()
            if steps
        ]
        if self._scripts["search"]:
            unused.append("recall may have been answered by the mirror: InputParams(mirror=False)")
        if self._faults or unused:
            raise UnexpectedCall("; ".join([*self._faults, *unused]))

    def __enter__(self) -> ScriptedStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.verify()

    # The protocol

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return await self._call("profile", tag, timeout, {}, lambda: self.profiles.get(tag, Profile()))

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        def work() -> list[Hit]:
            known = [*self.hits.get(tag, ()), *self._remembered_hits(tag, query)]
            found = [
                hit
                for hit in known
                if hit.similarity >= threshold and (mode == "hybrid" or hit.memory_id is not None)
            ]
            return sorted(found, key=lambda hit: -hit.similarity)[:limit]

        arguments = {"query": query, "limit": limit, "threshold": threshold, "mode": mode}
        return await self._call("search", tag, timeout, arguments, work)

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        def work() -> str:
            self._check_paid("append", dreaming)
            kept = self._tags[tag]
            before = kept.documents.get(custom_id)
            kept.documents[custom_id] = text if before is None else f"{before}\n{text}"
            return kept.ids.setdefault(custom_id, self._new_id("doc"))

        arguments = {"custom_id": custom_id, "text": text, "dreaming": dreaming, "at": at}
        return await self._call("append", tag, timeout, arguments, work)

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        arguments = {"custom_id": custom_id, "service_id": service_id}
        return await self._call("read", tag, timeout, arguments, lambda: self.document(tag, custom_id))

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        def work() -> str:
            self._check_paid("remember", dreaming)
            document = self._new_id("doc")
            self._tags[tag].memories.append(_Memory(self._new_id("mem"), text, document))
            return document

        return await self._call("remember", tag, timeout, {"text": text, "dreaming": dreaming}, work)

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        def work() -> None:
            kept = self._tags[tag]
            left = [memory for memory in kept.memories if memory.document != service_id]
            if len(left) == len(kept.memories):
                raise NotFound("unremember answered 404", status=404)
            kept.memories[:] = left

        await self._call("unremember", tag, timeout, {"service_id": service_id}, work)

    async def forget(
        self, tag: str, *, memory_id: str | None = None, text: str | None = None, timeout: float
    ) -> bool:
        def work() -> bool:
            for memory in self._tags[tag].memories:
                if memory.id == memory_id or (memory_id is None and memory.text == text):
                    if memory.forgotten:
                        raise Conflict("forget answered 409", status=409)
                    memory.forgotten = True
                    return True
            before = self.hits.get(tag, [])
            left = [
                hit
                for hit in before
                if hit.memory_id is None
                or not (hit.memory_id == memory_id or (memory_id is None and hit.text == text))
            ]
            if len(left) == len(before):
                raise NotFound("forget answered 404", status=404)
            self.hits[tag] = left
            return True

        return await self._call("forget", tag, timeout, {"memory_id": memory_id, "text": text}, work)

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        def work() -> MemoryPage:
            self._check_lists()
            remembered = self._tags[tag].memories[::-1] if tag in self._tags else []
            live = [
                *(StoredMemory(m.id, m.text, documents=(m.document,)) for m in remembered if not m.forgotten),
                *self.stored.get(tag, ()),
                *(
                    StoredMemory(hit.memory_id, hit.text, updated_at=hit.updated_at)
                    for hit in self.hits.get(tag, ())
                    if hit.memory_id is not None
                ),
            ]
            first = (page - 1) * limit
            return MemoryPage(
                entries=tuple(live[first : first + limit]),
                gone=tuple(m.id for m in remembered if m.forgotten),
                more=first + limit < len(live),
                total=len(live) + sum(m.forgotten for m in remembered),
            )

        return await self._call("memories", tag, timeout, {"page": page, "limit": limit}, work)

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        def work() -> list[StoredCall]:
            self._check_lists()
            if tag not in self._tags:
                return []
            kept = self._tags[tag]
            newest_first = list(kept.documents.items())[::-1]
            return [
                StoredCall(
                    id=kept.ids[custom_id],
                    custom_id=custom_id,
                    text=text,
                    processed=custom_id in self.processed,
                )
                for custom_id, text in newest_first[:limit]
            ]

        return await self._call("latest_calls", tag, timeout, {"limit": limit}, work)

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        def work() -> DocumentPage:
            self._check_lists()
            kept = self._tags[tag] if tag in self._tags else _Tag()
            listed = [
                StoredCall(kept.ids[name], name, text if contents else "", processed=name in self.processed)
                for name, text in kept.documents.items()
            ]
            listed += [
                StoredCall(memory.document, None, memory.text if contents else "", processed=True)
                for memory in kept.memories
                if not memory.forgotten
            ]
            first = (page - 1) * limit
            return DocumentPage(
                entries=tuple(listed[::-1][first : first + limit]),
                more=first + limit < len(listed),
                total=len(listed),
            )

        arguments = {"page": page, "limit": limit, "contents": contents}
        return await self._call("list_documents", tag, timeout, arguments, work)

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        def work() -> None:
            kept = self._tags[tag]
            gone = [name for name, identifier in kept.ids.items() if identifier in ids]
            for name in gone:
                del kept.documents[name], kept.ids[name]
            kept.memories[:] = [memory for memory in kept.memories if memory.document not in ids]

        await self._call("delete_documents", tag, timeout, {"ids": list(ids)}, work)

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        def work() -> DeletedTag:
            if tag not in self._tags and tag not in self.hits and tag not in self.profiles:
                raise NotFound("delete_tag answered 404", status=404)
            kept = self._tags.pop(tag, _Tag())
            memories = len(kept.memories) + len(self.stored.pop(tag, ())) + len(self.hits.pop(tag, ()))
            self.profiles.pop(tag, None)
            return DeletedTag(documents=len(kept.documents) + len(kept.memories), memories=memories)

        return await self._call("delete_tag", tag, timeout, {}, work)

    async def aclose(self) -> None:
        self.closed += 1

    # How a call is played

    async def _call(
        self,
        operation: Operation,
        tag: str,
        timeout: float,
        arguments: dict[str, Any],
        work: Callable[[], T],
    ) -> T:
        loop = asyncio.get_running_loop()
        call = StoreCall(operation, tag, {**arguments, "timeout": timeout}, started=loop.time())
        self.calls.append(call)
        try:
            self._check_allowed(call)
            return await self._play(operation, self._next(operation), timeout, work)
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.ended = loop.time()

    async def _play(self, operation: Operation, step: Step, timeout: float, work: Callable[[], T]) -> T:
        late = ServiceTimeout(f"{operation} timed out", uncertain=operation in _WRITES)
        if isinstance(step, Hang):
            if step.committed:
                work()
            if step.deaf:
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(timeout)
            raise late
        result: T | None = None
        if isinstance(step, Work) or (isinstance(step, Fail) and step.committed):
            result = work()
        await asyncio.sleep(min(step.after, timeout))
        if step.after >= timeout:
            raise late
        if isinstance(step, Fail):
            raise step.error
        if isinstance(step, Answer):
            return cast("T", step.value)
        if isinstance(step, Work):  # pyright: ignore[reportUnnecessaryIsInstance]
            return cast("T", result)
        assert_never(step)

    def _next(self, operation: Operation) -> Step:
        if self._scripts[operation]:
            return self._scripts[operation].popleft()
        return self._rules.get(operation, Work())

    def _check_allowed(self, call: StoreCall) -> None:
        fault = None
        if call.operation in self._forbidden:
            fault = f"{call.operation!r} was called although it is forbidden"
        elif not call.tag.strip():
            fault = f"{call.operation!r} was called with a blank container tag"
        if fault is not None:
            self._faults.append(fault)
            raise UnexpectedCall(fault)

    def _check_lists(self) -> None:
        if not self.lists:
            raise NotImplementedError("this client can list nothing")

    def _check_paid(self, operation: str, dreaming: Dreaming) -> None:
        if dreaming == "instant" and not self.instant:
            raise PaymentRequired(f"{operation} answered 402", status=402)

    def _remembered_hits(self, tag: str, query: str) -> list[Hit]:
        if tag not in self._tags:
            return []
        asked = set(query.casefold().split())
        return [
            Hit(memory.text, len(asked & set(memory.text.casefold().split())) / len(asked), memory.id)
            for memory in self._tags[tag].memories
            if asked and not memory.forgotten
        ]

    def _new_id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}_{self._ids}"
