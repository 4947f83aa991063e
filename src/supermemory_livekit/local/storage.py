"""Everything stored under one container tag, and nothing else.

`Storage.read(tag)` and `Storage.write(tag)` hand out the only objects that can reach a caller's rows, and
both need exactly one tag. Each statement in `Container` and `Writer` is bound to that tag's id, so no
request can leave it. `Storage.locate` is the one look across tags: it tells under which tag a document id
is, never what the document says.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from .container import LIVE, Container
from .database import Database
from .records import TagInfo
from .texts import now_ms
from .writer import Writer

__all__ = ["Storage"]


class Storage:
    """The way from a tag to its rows. Thread-safe; blocks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def read(self, tag: str) -> Generator[Container]:
        """What is under `tag`, in one snapshot; empty for a tag that was never written to."""
        with self._database.read() as connection:
            row = connection.execute("SELECT id, version FROM tags WHERE tag=?", (tag,)).fetchone()
            yield Container(connection, tag, *((row["id"], row["version"]) if row else (0, 0)))

    @contextmanager
    def write(self, tag: str) -> Generator[Writer]:
        """A transaction on what is under `tag`, creating it if need be. All of it happens, or nothing."""
        with self._database.write() as connection:
            now = now_ms()
            connection.execute(
                "INSERT OR IGNORE INTO tags (tag, created_at, updated_at) VALUES (?, ?, ?)", (tag, now, now)
            )
            row = connection.execute(
                "UPDATE tags SET version=version+1, updated_at=? WHERE tag=? RETURNING id, version",
                (now, tag),
            ).fetchone()
            yield Writer(connection, tag, row["id"], row["version"])

    def locate(self, key: str) -> list[str]:
        """Tags that have a document with this id, or else with this custom id."""
        with self._database.read() as connection:
            for column in ("id", "custom_id"):
                rows = connection.execute(
                    f"SELECT t.tag FROM documents d JOIN tags t ON t.id=d.tag_id WHERE d.{column}=?",  # noqa: S608
                    (key,),
                ).fetchall()
                if rows:
                    return [row["tag"] for row in rows]
        return []

    def tags(self, only: str | None = None) -> list[TagInfo]:
        """Every tag, or one, with its counts."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"""SELECT t.*, (SELECT count(*) FROM documents d WHERE d.tag_id=t.id) AS documents,
                (SELECT count(*) FROM memories WHERE tag_id=t.id AND {LIVE}) AS memories
                FROM tags t WHERE :only IS NULL OR t.tag=:only ORDER BY t.updated_at DESC""",  # noqa: S608
                {"only": only, "now": now_ms()},
            ).fetchall()
        columns = ("tag", "entity_context", "created_at", "updated_at", "documents", "memories")
        return [TagInfo(**{column: row[column] for column in columns}) for row in rows]

    def outdated_tags(self, model_id: str) -> list[str]:
        """Tags with a passage that has no vector of this model."""
        with self._database.read() as connection:
            rows = connection.execute(
                """SELECT tag FROM tags WHERE id IN (
                SELECT tag_id FROM chunks WHERE vector_model IS NOT :model
                UNION SELECT tag_id FROM memories WHERE vector_model IS NOT :model)""",
                {"model": model_id},
            ).fetchall()
        return [row["tag"] for row in rows]
