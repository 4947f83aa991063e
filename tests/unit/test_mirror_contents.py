"""What a mirror holds, whatever happens in whatever order."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.mirroring import NOW

from supermemory_livekit.mirror.contents import Bounds, Contents
from supermemory_livekit.retrieval import Passage, norm_form
from supermemory_livekit.store import MemoryPage, Profile, StoredCall, StoredMemory
from supermemory_livekit.transcript import Role

BOUNDS = Bounds(memories=5, memory_bytes=100, passages=4)

TEXTS = (
    "Likes tea",
    "likes  tea.",
    "Has a dog",
    "Lives in Porto",
    "[2026-11-29] Has a dog",
    "Plays the violin",
)
texts = st.sampled_from(TEXTS)
ids = st.sampled_from([f"m{n}" for n in range(8)])
documents = st.sampled_from([f"d{n}" for n in range(4)])
memories = st.builds(
    StoredMemory,
    id=ids,
    text=texts,
    static=st.booleans(),
    updated_at=st.integers(0, 9).map(lambda hours: NOW - timedelta(hours=hours)),
    documents=st.tuples(documents),
)
pages = st.builds(
    MemoryPage,
    entries=st.lists(memories, max_size=8, unique_by=lambda one: one.id).map(tuple),
    gone=st.lists(ids, max_size=2).map(tuple),
    replaced=st.lists(ids, max_size=2).map(tuple),
)
calls = st.builds(
    StoredCall, id=documents, custom_id=st.sampled_from([None, "lk-1"]), text=texts, processed=st.booleans()
)


class AnyOrder(RuleBasedStateMachine):
    """An index that does what it is told, and a list of what must not be shown."""

    def __init__(self) -> None:
        super().__init__()
        self.contents = Contents(BOUNDS, document_id=None, since=NOW)
        self.index: dict[str, Passage] = {}
        self.used: set[str] = set()
        self.forgotten: set[str] = set()
        self.forgotten_ids: set[str] = set()
        self.remembered: set[str] = set()
        self.turns = 0

    @initialize(page=pages)
    def load(self, page: MemoryPage) -> None:
        self.contents.begin()
        self.contents.take(page)

    @rule(page=pages)
    def news(self, page: MemoryPage) -> None:
        self.contents.take(page)
        taken = [
            one
            for one in page.entries
            if one.id not in self.forgotten_ids and norm_form(one.text) not in self.forgotten
        ]
        listed = {norm_form(one.text) for one in taken}
        made = {document for one in taken for document in one.documents}
        self.remembered -= listed
        if made:
            # The receipt of each fact is "d0".
            self.remembered -= self.remembered if "d0" in made else set()

    @rule(listed=st.sets(ids))
    def whole_list_ended(self, listed: set[str]) -> None:
        self.contents.keep_only(listed)

    @rule(known=st.lists(calls, max_size=3, unique_by=lambda one: one.id))
    def calls_listed(self, known: list[StoredCall]) -> None:
        self.contents.take_calls(known)

    @rule(static=st.lists(texts), dynamic=st.lists(texts))
    def profile_loaded(self, static: list[str], dynamic: list[str]) -> None:
        self.contents.take_profile(Profile(tuple(static), tuple(dynamic)))

    @rule(text=texts)
    def remember(self, text: str) -> None:
        self.contents.remembered(text, "d0", NOW)
        self.forgotten.discard(norm_form(text))
        self.remembered.add(norm_form(text))

    @rule(text=texts)
    def forget_text(self, text: str) -> None:
        self.contents.forgotten(memory_id=None, text=text)
        self.forgotten.add(norm_form(text))
        self.remembered.discard(norm_form(text))

    @rule(memory_id=ids)
    def forget_id(self, memory_id: str) -> None:
        shown = [one for one in self.index.values() if self.held_id(one.key) == memory_id]
        self.contents.forgotten(memory_id=memory_id, text=None)
        self.forgotten_ids.add(memory_id)
        for one in shown:
            self.forgotten.add(norm_form(one.text))
            self.remembered.discard(norm_form(one.text))

    @rule(role=st.sampled_from(["caller", "agent"]), text=texts)
    def say(self, role: Role, text: str) -> None:
        self.contents.heard(role, text, NOW)

    def held_id(self, key: str) -> str | None:
        held = self.contents.get(key)
        return held.memory_id if held is not None else None

    @invariant()
    def the_index_follows(self) -> None:
        """What is added and discarded adds up to what is held, and no key is used twice."""
        changes = self.contents.changes()
        for key in changes.discard:
            del self.index[key]
        for passage in changes.add:
            assert passage.key not in self.used
            self.used.add(passage.key)
            self.index[passage.key] = passage
        assert len(self.index) == len(self.contents)
        for key, passage in self.index.items():
            held = self.contents.get(key)
            assert held is not None
            assert (held.text, held.kind) == (passage.text, passage.kind)

    @invariant()
    def nothing_forgotten_is_shown(self) -> None:
        self.the_index_follows()
        for key, passage in self.index.items():
            said = passage.kind == "chunk" and passage.text not in TEXTS
            assert said or norm_form(passage.text) not in self.forgotten
            assert self.held_id(key) not in self.forgotten_ids
        profile = self.contents.profile or Profile()
        for line in (*profile.static, *profile.dynamic):
            assert norm_form(line) not in self.forgotten

    @invariant()
    def nothing_remembered_is_missing(self) -> None:
        self.the_index_follows()
        shown = {norm_form(passage.text) for passage in self.index.values()}
        profile = self.contents.profile
        lines = {norm_form(line) for line in (*profile.static, *profile.dynamic)} if profile else shown
        assert self.remembered <= shown
        assert self.remembered <= lines

    @invariant()
    def the_bounds_hold(self) -> None:
        self.the_index_follows()
        kept = [passage for key, passage in self.index.items() if self.held_id(key)]
        assert len(kept) <= BOUNDS.memories
        assert sum(len(passage.text.encode()) for passage in kept) <= BOUNDS.memory_bytes
        assert sum(passage.kind == "chunk" for passage in self.index.values()) <= 2 * BOUNDS.passages


AnyOrder.TestCase.settings = settings(max_examples=200, stateful_step_count=25, deadline=None)
TestAnyOrder = AnyOrder.TestCase
"""Issue "memory that costs the caller no time", point 1: read your own writes, bounded, whatever the order of refreshes
and answers."""
