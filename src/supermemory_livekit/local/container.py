"""Reads under one tag. `storage.py` hands these out, one per transaction."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from supermemory_livekit.retrieval import Place

from .database import Connection, Row
from .records import (
    Chunk,
    Document,
    DocumentOutline,
    Memory,
    StoredPassage,
    chunk_of,
    document_of,
    memory_of,
    outline_of,
)
from .texts import exact_form, norm_form, now_ms

__all__ = ["LIVE", "Container", "Unembedded"]

Unembedded = tuple[Literal["memory", "chunk"], int, str, str]
"""Kind, row and text of something without a vector of the wanted model, and what stands before it: a turn is
embedded with the turn that it may answer."""

_DOCUMENT = """
SELECT d.*, t.tag,
  EXISTS (SELECT 1 FROM jobs j WHERE j.kind='dream' AND j.tag_id=d.tag_id AND j.document_seq=d.seq)
    AS dreaming,
  EXISTS (SELECT 1 FROM jobs j WHERE j.kind='embed' AND j.tag_id=d.tag_id)
    AND EXISTS (SELECT 1 FROM chunks c WHERE c.document_seq=d.seq AND c.vector IS NULL) AS embedding
FROM documents d JOIN tags t ON t.id=d.tag_id WHERE d.tag_id=:tag_id"""

_MEMORY = """
SELECT m.*, (SELECT count(*) FROM sources s WHERE s.memory_seq=m.seq) AS source_count
FROM memories m WHERE m.tag_id=:tag_id"""

_ALL = 2**62
"""A limit that nothing reaches: the backends have no common way to say none."""

LIVE = "latest=1 AND forgotten_at IS NULL AND (forget_after IS NULL OR forget_after > :now)"


class Container:
    """Reads under one tag."""

    def __init__(self, connection: Connection, tag: str, tag_id: int, version: int) -> None:
        self._connection = connection
        self.tag = tag
        self.tag_id = tag_id
        """0 when nothing was ever stored under the tag."""
        self.version = version
        """Grows with every change below the tag."""

    def _all(self, statement: str, values: Mapping[str, object] | None = None) -> Sequence[Row]:
        return self._connection.execute(statement, {"tag_id": self.tag_id, **(values or {})})

    def _documents(self, condition: str, values: Mapping[str, object] | None = None) -> list[Document]:
        return [document_of(row) for row in self._all(f"{_DOCUMENT} AND {condition}", values)]

    def _memories(self, condition: str, values: Mapping[str, object] | None = None) -> list[Memory]:
        return [memory_of(row) for row in self._all(f"{_MEMORY} AND {condition}", values)]

    def document(self, key: str) -> Document | None:
        """By id, or else by custom id."""
        found = self._documents("d.id=:key", {"key": key}) or self._documents(
            "d.custom_id=:key", {"key": key}
        )
        return found[0] if found else None

    def document_by_custom_id(self, custom_id: str) -> Document | None:
        found = self._documents("d.custom_id=:key", {"key": custom_id})
        return found[0] if found else None

    def document_by_seq(self, seq: int) -> Document | None:
        return self.documents_by_seq([seq]).get(seq)

    def outlines(self, *, by_update: bool = False, descending: bool = True) -> list[DocumentOutline]:
        """Of all documents, in the order they were stored or else changed."""
        order = "DESC" if descending else "ASC"
        column = "updated_at" if by_update else "created_at"
        rows = self._all(
            f"""SELECT seq, metadata, filepath FROM documents
            WHERE tag_id=:tag_id ORDER BY {column} {order}, seq {order}"""  # noqa: S608
        )
        return [outline_of(row) for row in rows]

    def documents_under_way(self) -> list[Document]:
        """Those not found by meaning yet, or not yet made into memories, stored last first."""
        rows = self._all(
            f"SELECT * FROM ({_DOCUMENT}) listed WHERE embedding OR dreaming ORDER BY created_at DESC, seq DESC"  # noqa: S608
        )
        return [document_of(row) for row in rows]

    def documents_page(self, limit: int, offset: int) -> tuple[list[Document], int]:
        """Some of them, changed last first, and how many there are in all."""
        total = self._all("SELECT count(*) AS total FROM documents WHERE tag_id=:tag_id")[0]["total"]
        ordered = "1=1 ORDER BY d.updated_at DESC, d.seq DESC LIMIT :limit OFFSET :offset"
        return self._documents(ordered, {"limit": limit, "offset": offset}), int(total)

    def documents_by_seq(self, seqs: Collection[int]) -> dict[int, Document]:
        found = self._documents("d.seq = ANY(:seqs)", {"seqs": sorted(seqs)})
        return {document.seq: document for document in found}

    def documents_in_lines(self, after: int, limit: int) -> list[Document]:
        """Documents with a piece of several lines, in the order they were stored, those after the `seq` given."""
        return self._documents(
            """d.seq>:after AND EXISTS (
            SELECT 1 FROM chunks c WHERE c.document_seq=d.seq AND c.text LIKE :lines)
            ORDER BY d.seq LIMIT :limit""",
            {"after": after, "lines": "%\n%", "limit": limit},
        )

    def chunks(self, ids: Collection[str]) -> dict[str, Chunk]:
        rows = self._all(
            "SELECT * FROM chunks WHERE +tag_id=:tag_id AND id = ANY(:ids)",  # as in `memories`
            {"ids": list(ids)},
        )
        return {row["id"]: chunk_of(row) for row in rows}

    def chunks_of(self, document: Document) -> list[Chunk]:
        """In the order of the text."""
        rows = self._all(
            "SELECT * FROM chunks WHERE tag_id=:tag_id AND document_seq=:seq ORDER BY start",
            {"seq": document.seq},
        )
        return [chunk_of(row) for row in rows]

    def chunks_page(
        self, documents: Collection[int], limit: int, offset: int, *, by_position: bool, descending: bool
    ) -> tuple[list[Chunk], int]:
        """Some chunks of these documents (their `seq`), by the documents and their text or else by time, and how
        many there are in all.
        """
        condition = "tag_id=:tag_id AND document_seq = ANY(:documents)"
        values = {"documents": sorted(documents), "limit": limit, "offset": offset}
        total = self._all(f"SELECT count(*) AS total FROM chunks WHERE {condition}", values)[0]["total"]  # noqa: S608
        direction = "DESC" if descending else "ASC"
        order = ", ".join(
            f"{column} {direction}"
            for column in (("document_seq", "start") if by_position else ("at", "seq"))
        )
        rows = self._all(
            f"SELECT * FROM chunks WHERE {condition} ORDER BY {order} LIMIT :limit OFFSET :offset",  # noqa: S608
            values,
        )
        return [chunk_of(row) for row in rows], int(total)

    def memory(self, memory_id: str) -> Memory | None:
        found = self._memories("m.id=:id", {"id": memory_id})
        return found[0] if found else None

    def memories(self, ids: Collection[str]) -> dict[str, Memory]:
        """Those of them that are latest, not forgotten and not expired."""
        # The plus keeps SQLite from reading all of the tag instead of these rows (3 ms among 10,000 memories).
        statement = f"{_MEMORY.replace('WHERE m.tag_id', 'WHERE +m.tag_id')} AND m.id = ANY(:ids)"
        found = [memory_of(row) for row in self._all(statement, {"ids": list(ids)})]
        now = now_ms()
        return {memory.id: memory for memory in found if memory.latest and not memory.forgotten(now)}

    def live_memories(self, *, static: bool | None = None, limit: int | None = None) -> list[Memory]:
        """What is held to be true now, newest first."""
        kind = "m.static IN (0, 1)" if static is None else f"m.static={int(static)}"
        return self._memories(
            f"{LIVE} AND {kind} ORDER BY m.at DESC, m.seq DESC LIMIT :limit",
            {"limit": _ALL if limit is None else limit, "now": now_ms()},
        )

    def memories_page(
        self, state: Literal["all", "held", "forgotten"], text: str, limit: int, offset: int
    ) -> tuple[list[Memory], int]:
        """Some latest versions in which `text` occurs, said last first, and how many there are in all.

        `held`: what is held to be true now; `forgotten`: what was forgotten or has expired.
        """
        condition = {"all": "latest=1", "held": LIVE, "forgotten": f"latest=1 AND NOT ({LIVE})"}[state]
        literal = re.sub(r"([\\%_])", r"\\\1", norm_form(text))
        values = {"like": f"%{literal}%", "limit": limit, "offset": offset, "now": now_ms()}
        condition = f"{condition} AND norm LIKE :like ESCAPE '\\'"
        total = self._all(
            f"SELECT count(*) AS total FROM memories WHERE tag_id=:tag_id AND {condition}",  # noqa: S608
            values,
        )
        page = self._memories(
            f"{condition} ORDER BY m.at DESC, m.seq DESC LIMIT :limit OFFSET :offset", values
        )
        return page, int(total[0]["total"])

    def forgotten_memories(self) -> list[Memory]:
        """What was forgotten or has expired."""
        return self._memories(f"m.latest=1 AND NOT ({LIVE})", {"now": now_ms()})

    def all_memories(self) -> list[Memory]:
        """Every version of everything, in the order it was stored."""
        return self._memories("1=1 ORDER BY m.seq")

    def memories_like(self, text: str) -> list[Memory]:
        """Latest memories with exactly this text (`texts.exact_form`), forgotten ones too, newest first."""
        found = self._memories("m.latest=1 AND m.norm=:norm ORDER BY m.seq DESC", {"norm": norm_form(text)})
        return [memory for memory in found if exact_form(memory.text) == exact_form(text)]

    def same_memories(self, norm: str) -> list[Memory]:
        """All versions of the fact with this `texts.norm_form`, newest first."""
        return self._memories("m.norm=:norm ORDER BY m.seq DESC", {"norm": norm})

    def memories_of(self, document: Document) -> list[Memory]:
        return self._memories(
            "m.seq IN (SELECT memory_seq FROM sources WHERE document_seq=:seq) ORDER BY m.seq",
            {"seq": document.seq},
        )

    def versions_after(self, memory: Memory) -> list[Memory]:
        """The versions that took this one's place directly."""
        return self._memories("m.parent_id=:id ORDER BY m.seq", {"id": memory.id})

    def memory_counts(self, documents: Collection[Document]) -> dict[int, int]:
        """How many of what is held to be true now comes from each, by the document's `seq`."""
        rows = self._all(
            f"""SELECT s.document_seq, count(*) AS total FROM sources s JOIN memories m ON m.seq=s.memory_seq
            WHERE m.tag_id=:tag_id AND {LIVE}
            AND s.document_seq = ANY(:seqs) GROUP BY s.document_seq""",  # noqa: S608
            {"seqs": [document.seq for document in documents], "now": now_ms()},
        )
        return {row["document_seq"]: row["total"] for row in rows}

    def sources(self, memory_seqs: Collection[int]) -> dict[int, list[Document]]:
        """The documents each memory comes from."""
        pairs = self._all(
            """SELECT s.memory_seq, s.document_seq FROM sources s JOIN memories m ON m.seq=s.memory_seq
            WHERE m.tag_id=:tag_id AND s.memory_seq = ANY(:seqs)""",
            {"seqs": list(memory_seqs)},
        )
        documents = self.documents_by_seq({pair["document_seq"] for pair in pairs})
        found: dict[int, list[Document]] = {seq: [] for seq in memory_seqs}
        for pair in pairs:
            if pair["document_seq"] in documents:
                found[pair["memory_seq"]].append(documents[pair["document_seq"]])
        return found

    def passage_count(self) -> int:
        """How many `passage_ids` there are."""
        row = self._all(
            f"""SELECT (SELECT count(*) FROM memories WHERE tag_id=:tag_id AND {LIVE})
            + (SELECT count(*) FROM chunks WHERE tag_id=:tag_id) AS total""",  # noqa: S608
            {"now": now_ms()},
        )[0]
        return int(row["total"])

    def passage_ids(self) -> Sequence[Row]:
        """`kind` and `id` of everything that can be found."""
        return self._all(
            f"""SELECT 'memory' AS kind, id FROM memories WHERE tag_id=:tag_id AND {LIVE}
            UNION ALL SELECT 'chunk', id FROM chunks WHERE tag_id=:tag_id""",  # noqa: S608
            {"now": now_ms()},
        )

    def passages(self, since: int) -> list[StoredPassage]:
        """What can be found and changed after that version, of each kind in the order it was stored."""
        rows = self._all(
            f"""SELECT 'memory' AS kind, seq, id, text, at, forget_after, vector, vector_model,
            0 AS document_seq, 0 AS start, 0 AS stop FROM memories
            WHERE tag_id=:tag_id AND changed>:since AND {LIVE}
            UNION ALL SELECT 'chunk', seq, id, text, at, NULL, vector, vector_model,
            document_seq, start, stop FROM chunks
            WHERE tag_id=:tag_id AND changed>:since""",  # noqa: S608
            {"since": since, "now": now_ms()},
        )
        return [
            StoredPassage(
                kind=row["kind"],
                id=row["id"],
                text=row["text"],
                at=row["at"],
                forget_after=row["forget_after"],
                vector=None if row["vector"] is None else self._connection.vector(row["vector"]),
                vector_model=row["vector_model"],
                place=Place(str(row["document_seq"]), row["start"], row["stop"])
                if row["document_seq"]
                else None,
            )
            for row in sorted(rows, key=lambda row: (row["kind"], row["seq"]))
        ]

    def unembedded(self, model_id: str, limit: int) -> list[Unembedded]:
        """Passages without a vector of this model, facts first."""
        rows = self._all(
            """SELECT 'memory' AS kind, seq, text, NULL AS before FROM memories
            WHERE tag_id=:tag_id AND (vector_model IS NULL OR vector_model<>:model) AND latest=1
            UNION ALL SELECT 'chunk', seq, text, (SELECT p.text FROM chunks p
                WHERE p.tag_id=c.tag_id AND p.document_seq=c.document_seq AND p.start<c.start
                ORDER BY p.start DESC LIMIT 1) FROM chunks c
            WHERE tag_id=:tag_id AND (vector_model IS NULL OR vector_model<>:model)
            LIMIT :limit""",
            {"model": model_id, "limit": limit},
        )
        return [(row["kind"], row["seq"], row["text"], row["before"] or "") for row in rows]
