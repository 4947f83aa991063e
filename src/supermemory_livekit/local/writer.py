"""Reads and writes under one tag, in one transaction. `storage.py` hands these out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .container import Container, Unembedded
from .records import Document, Memory, Metadata, NewMemory
from .texts import new_id, norm_form, now_ms, opening_time, turns

__all__ = ["Vector", "Writer"]

Vector = NDArray[np.float32]


class Writer(Container):
    """Reads and writes under one tag, inside one transaction."""

    def set_entity_context(self, text: str | None) -> None:
        self._all("UPDATE tags SET entity_context=:text WHERE id=:tag_id", {"text": text})

    def insert_document(
        self,
        *,
        content: str,
        custom_id: str | None,
        metadata: Metadata,
        task_type: str,
        filepath: str | None,
        dated_at: int | None,
    ) -> Document:
        now = now_ms()
        document_id = new_id()
        self._all(
            """INSERT INTO documents
            (id, tag_id, custom_id, content, metadata, task_type, filepath, dated_at, created_at, updated_at)
            VALUES (:id, :tag_id, :custom_id, :content, :metadata, :task_type, :filepath, :dated_at,
            :now, :now)""",
            {
                "id": document_id,
                "custom_id": custom_id,
                "content": content,
                "metadata": json.dumps(metadata),
                "task_type": task_type,
                "filepath": filepath,
                "dated_at": dated_at,
                "now": now,
            },
        )
        document = self.document(document_id)
        assert document is not None
        self._cut(document, 0)
        return document

    def append(self, document: Document, added: str, *, metadata: Metadata, dated_at: int | None) -> None:
        """Make the content longer. What was cut into pieces before is kept, save for the last one."""
        content = document.content + added
        self._all(
            """UPDATE documents SET content=:content, metadata=:metadata, updated_at=:now,
            dated_at=coalesce(:dated_at, dated_at) WHERE tag_id=:tag_id AND seq=:seq""",
            {
                "content": content,
                "metadata": json.dumps({**document.metadata, **metadata}),
                "dated_at": dated_at,
                "now": now_ms(),
                "seq": document.seq,
            },
        )
        last = self._all(
            "SELECT max(start) AS start FROM chunks WHERE tag_id=:tag_id AND document_seq=:seq",
            {"seq": document.seq},
        )[0]["start"]
        renewed = self.document_by_seq(document.seq)
        assert renewed is not None
        self._cut(renewed, last or 0)

    def replace(self, document: Document, content: str) -> None:
        """Put other content in the document's place. Memories that stem only from the old content go."""
        self._all(
            """UPDATE documents SET content=:content, dreamed=0, epoch=epoch+1, updated_at=:now
            WHERE tag_id=:tag_id AND seq=:seq""",
            {"content": content, "now": now_ms(), "seq": document.seq},
        )
        self._drop_memories_of(document)
        self._all("DELETE FROM chunks WHERE tag_id=:tag_id AND document_seq=:seq", {"seq": document.seq})
        renewed = self.document_by_seq(document.seq)
        assert renewed is not None
        self._cut(renewed, 0)

    def set_document(
        self,
        document: Document,
        *,
        metadata: Metadata | None = None,
        custom_id: str | None = None,
        filepath: str | None = None,
        task_type: str | None = None,
        dated_at: int | None = None,
    ) -> None:
        """Change what is not None."""
        self._all(
            """UPDATE documents SET updated_at=:now, metadata=coalesce(:metadata, metadata),
            custom_id=coalesce(:custom_id, custom_id), filepath=coalesce(:filepath, filepath),
            task_type=coalesce(:task_type, task_type), dated_at=coalesce(:dated_at, dated_at)
            WHERE tag_id=:tag_id AND seq=:seq""",
            {
                "metadata": None if metadata is None else json.dumps(metadata),
                "custom_id": custom_id,
                "filepath": filepath,
                "task_type": task_type,
                "dated_at": dated_at,
                "now": now_ms(),
                "seq": document.seq,
            },
        )

    def recut(self, document: Document) -> None:
        """Cut the content into pieces as it is done today. Pieces that are so already are kept."""
        self._cut(document, 0)

    def set_dreamed(self, document: Document, characters: int) -> None:
        self._all(
            "UPDATE documents SET dreamed=:characters WHERE tag_id=:tag_id AND seq=:seq",
            {"characters": characters, "seq": document.seq},
        )

    def delete_document(self, document: Document) -> None:
        """Delete it and the memories that stem only from it."""
        self._drop_memories_of(document)
        self._all("DELETE FROM jobs WHERE tag_id=:tag_id AND document_seq=:seq", {"seq": document.seq})
        self._all("DELETE FROM documents WHERE tag_id=:tag_id AND seq=:seq", {"seq": document.seq})

    def delete_all(self) -> tuple[int, int]:
        """Delete everything under the tag, and the tag. How many documents and memories that were."""
        counts = self._all(
            """SELECT (SELECT count(*) FROM documents WHERE tag_id=:tag_id) AS documents,
            (SELECT count(*) FROM memories WHERE tag_id=:tag_id AND latest=1) AS memories"""
        )[0]
        self._all("DELETE FROM tags WHERE id=:tag_id")
        return counts["documents"], counts["memories"]

    def add_memory(self, new: NewMemory, document: Document | None = None) -> Memory | None:
        """Store a fact.

        One that is known already gets the later date; one that takes the place of others is their next version.
        None when a document says what was forgotten or replaced since: that does not come back by itself.
        """
        now = now_ms()
        norm = norm_form(new.text)
        same = self.same_memories(norm)
        live = next((memory for memory in same if memory.latest and not memory.forgotten(now)), None)
        if live is not None:
            memory = self._refresh(live, new, now)
        elif document is not None and any(_outlived(old, new) for old in same):
            return None
        else:
            memory = self._insert_memory(new, norm, now)
        # A memory that was stored directly stands on its own: it stays when a document that repeats it goes.
        if document is not None and (live is None or live.source_count):
            self._all(
                "INSERT INTO sources (memory_seq, document_seq) VALUES (:memory, :document) ON CONFLICT DO NOTHING",
                {"memory": memory.seq, "document": document.seq},
            )
        replaced = [old for old in self.memories(new.replaces).values() if old.id != memory.id]
        for old in replaced:
            self._all(
                """UPDATE memories SET latest=0, updated_at=:now, changed=:changed
                WHERE tag_id=:tag_id AND seq=:seq""",
                {"now": now, "changed": self.version, "seq": old.seq},
            )
            self._hide_text_of(old)
        if replaced and live is None:
            parent = replaced[0]
            self._all(
                """UPDATE memories SET version=:version, parent_id=:parent, root_id=:root
                WHERE tag_id=:tag_id AND seq=:seq""",
                {
                    "version": parent.version + 1,
                    "parent": parent.id,
                    "root": parent.root_id or parent.id,
                    "seq": memory.seq,
                },
            )
        return self.memory(memory.id)

    def update_memory(self, old: Memory, new: NewMemory) -> Memory:
        """The next version of a memory, from the same documents."""
        memory = self.add_memory(new)
        assert memory is not None
        self._all(
            """INSERT INTO sources (memory_seq, document_seq)
            SELECT :new, document_seq FROM sources WHERE memory_seq=:old ON CONFLICT DO NOTHING""",
            {"new": memory.seq, "old": old.seq},
        )
        return memory

    def forget(self, memory: Memory, reason: str | None) -> None:
        """Out of search and profile. The row stays, so that the same words do not bring it back."""
        self._all(
            """UPDATE memories SET forgotten_at=:now, forget_reason=:reason, updated_at=:now, changed=:changed
            WHERE tag_id=:tag_id AND seq=:seq""",
            {"now": now_ms(), "reason": reason, "changed": self.version, "seq": memory.seq},
        )
        self._hide_text_of(memory)

    def set_vectors(self, vectors: Sequence[tuple[Unembedded, Vector]], model_id: str) -> None:
        for kind, table in (("memory", "memories"), ("chunk", "chunks")):
            self._connection.execute_many(
                f"""UPDATE {table} SET vector=:vector, vector_model=:model, changed=:changed
                WHERE tag_id=:tag_id AND seq=:seq AND text=:text""",  # noqa: S608
                [
                    {
                        "tag_id": self.tag_id,
                        "vector": vector,
                        "model": model_id,
                        "changed": self.version,
                        "seq": seq,
                        "text": text,
                    }
                    for (of, seq, text, _), vector in vectors
                    if of == kind
                ],
            )

    def enqueue(self, kind: Literal["embed", "dream"], due_at: int, document: Document | None = None) -> None:
        """Have work done at `due_at`. More work for a job that waits (or is being done) makes it due anew."""
        self._all(
            """INSERT INTO jobs (kind, tag_id, document_seq, due_at) VALUES (:kind, :tag_id, :seq, :due)
            ON CONFLICT (kind, tag_id, document_seq)
            DO UPDATE SET due_at=:due, generation=jobs.generation+1, attempts=0""",
            {"kind": kind, "seq": document.seq if document else 0, "due": due_at},
        )

    def holds_job(self, seq: int, owner: str) -> bool:
        """Whether `owner` has the job. If so nobody takes it over before this transaction ends."""
        rows = self._all(
            "UPDATE jobs SET owner=owner WHERE tag_id=:tag_id AND seq=:seq AND owner=:owner RETURNING seq",
            {"seq": seq, "owner": owner},
        )
        return bool(rows)

    def finish_job(self, seq: int, generation: int) -> None:
        """Remove the job, or make it available again when its generation has grown."""
        values = {"seq": seq, "generation": generation}
        self._all("DELETE FROM jobs WHERE tag_id=:tag_id AND seq=:seq AND generation=:generation", values)
        self._all(
            "UPDATE jobs SET owner=NULL, lease_until=0, attempts=0 WHERE tag_id=:tag_id AND seq=:seq", values
        )

    def _refresh(self, memory: Memory, new: NewMemory, now: int) -> Memory:
        self._all(
            """UPDATE memories SET at=:at, static=:static, forget_after=:forget_after,
            updated_at=:now, changed=:changed WHERE tag_id=:tag_id AND seq=:seq""",
            {
                "at": max(new.at, memory.at),
                "static": int(new.static or memory.static),
                "forget_after": new.forget_after if new.at >= memory.at else memory.forget_after,
                "now": now,
                "changed": self.version,
                "seq": memory.seq,
            },
        )
        return memory

    def _insert_memory(self, new: NewMemory, norm: str, now: int) -> Memory:
        memory_id = new_id()
        self._all(
            """INSERT INTO memories (id, tag_id, text, norm, static, metadata, at, version, latest,
            forget_after, forget_reason, created_at, updated_at, changed)
            VALUES (:id, :tag_id, :text, :norm, :static, :metadata, :at, 1, 1, :forget_after,
            :forget_reason, :now, :now, :changed)""",
            {
                "id": memory_id,
                "text": new.text,
                "norm": norm,
                "static": int(new.static),
                "metadata": json.dumps(new.metadata or {}),
                "at": new.at,
                "forget_after": new.forget_after,
                "forget_reason": new.forget_reason,
                "now": now,
                "changed": self.version,
            },
        )
        memory = self.memory(memory_id)
        assert memory is not None
        return memory

    def _hide_text_of(self, memory: Memory) -> None:
        """A stored text that says this fact and nothing else is no longer found either. Calls keep their words."""
        for document in self.sources([memory.seq])[memory.seq]:
            if norm_form(document.content) == norm_form(memory.text):
                values = {"seq": document.seq}
                self._all("DELETE FROM chunks WHERE tag_id=:tag_id AND document_seq=:seq", values)

    def _drop_memories_of(self, document: Document) -> None:
        # A forgotten one stays, out of sight: without it the next call that mentions the fact would bring it back.
        lone = [
            memory.id
            for memory in self.memories_of(document)
            if memory.source_count == 1 and memory.forgotten_at is None
        ]
        for memory in filter(None, map(self.memory, reversed(lone))):
            values = {"id": memory.id, "seq": memory.seq, "parent": memory.parent_id, "changed": self.version}
            if memory.latest:
                # What this one had taken the place of is true again, as far as anybody knows.
                self._all(
                    "UPDATE memories SET latest=1, changed=:changed WHERE tag_id=:tag_id AND id=:parent",
                    values,
                )
            self._all("UPDATE memories SET parent_id=:parent WHERE tag_id=:tag_id AND parent_id=:id", values)
            self._all("UPDATE memories SET root_id=NULL WHERE tag_id=:tag_id AND root_id=:id", values)
            self._all("DELETE FROM memories WHERE tag_id=:tag_id AND seq=:seq", values)
        self._all(
            """DELETE FROM sources WHERE document_seq=:seq
            AND memory_seq IN (SELECT seq FROM memories WHERE tag_id=:tag_id)""",
            {"seq": document.seq},
        )

    def _cut(self, document: Document, start: int) -> None:
        """Cut the content into pieces from `start` on. One that stays the same keeps its row and vector."""
        existing = self._all(
            "SELECT id, start, text FROM chunks WHERE tag_id=:tag_id AND document_seq=:seq AND start>=:start",
            {"seq": document.seq, "start": start},
        )
        kept = {(row["start"], row["text"]): row["id"] for row in existing}
        at = document.dated_at if document.dated_at is not None else document.updated_at
        for begin, stop in turns(document.content, start):
            text = document.content[begin:stop]
            if kept.pop((begin, text), None) is not None:
                continue
            self._all(
                """INSERT INTO chunks (id, tag_id, document_seq, start, stop, text, at, changed)
                VALUES (:id, :tag_id, :seq, :begin, :stop, :text, :at, :changed)""",
                {
                    "id": new_id(),
                    "seq": document.seq,
                    "begin": begin,
                    "stop": stop,
                    "text": text,
                    "at": opening_time(text) or at,
                    "changed": self.version,
                },
            )
        for gone in kept.values():
            self._all("DELETE FROM chunks WHERE tag_id=:tag_id AND id=:id", {"id": gone})


def _outlived(old: Memory, new: NewMemory) -> bool:
    """Whether `old`, the same fact, was forgotten or replaced after `new` was said."""
    if old.forgotten_at is not None:
        return old.forgotten_at >= new.at
    return not old.latest and old.at >= new.at
