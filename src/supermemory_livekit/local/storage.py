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
            found = connection.execute("SELECT id, version FROM tags WHERE tag=:tag", {"tag": tag})
            yield Container(connection, tag, *((found[0]["id"], found[0]["version"]) if found else (0, 0)))

    @contextmanager
    def write(self, tag: str, *, durable: bool = True) -> Generator[Writer]:
        """A transaction on what is under `tag`, creating it if need be. All of it happens, or nothing.

        `durable`: False for what is done again when a failing machine undoes it, see `Database.write`. Nobody's
        words change by it, so it does not count as the tag's last change.
        """
        with self._database.write(durable=durable) as connection:
            # The first statement writes the tag's row, so that writers under one tag come one after another.
            row = connection.execute(
                """INSERT INTO tags (tag, version, created_at, updated_at) VALUES (:tag, 1, :now, :now)
                ON CONFLICT (tag) DO UPDATE SET version=tags.version+1,
                updated_at=CASE WHEN :durable=1 THEN excluded.updated_at ELSE tags.updated_at END
                RETURNING id, version""",
                {"tag": tag, "now": now_ms(), "durable": int(durable)},
            )[0]
            yield Writer(connection, tag, row["id"], row["version"])

    def locate(self, key: str) -> list[str]:
        """Tags that have a document with this id, or else with this custom id."""
        with self._database.read() as connection:
            for column in ("id", "custom_id"):
                rows = connection.execute(
                    f"SELECT t.tag FROM documents d JOIN tags t ON t.id=d.tag_id WHERE d.{column}=:key",  # noqa: S608
                    {"key": key},
                )
                if rows:
                    return [row["tag"] for row in rows]
        return []

    def tags(self, only: str | None = None) -> list[TagInfo]:
        """Every tag, changed last first, or one, with its counts."""
        condition = "" if only is None else "WHERE t.tag=:only"
        with self._database.read() as connection:
            rows = connection.execute(
                f"""SELECT t.*, (SELECT count(*) FROM documents d WHERE d.tag_id=t.id) AS documents,
                (SELECT count(*) FROM memories WHERE tag_id=t.id AND {LIVE}) AS memories
                FROM tags t {condition} ORDER BY t.updated_at DESC, t.tag""",  # noqa: S608
                {"only": only, "now": now_ms()},
            )
        columns = ("tag", "entity_context", "created_at", "updated_at", "documents", "memories")
        return [TagInfo(**{column: row[column] for column in columns}) for row in rows]

    def outdated_tags(self, model_id: str) -> list[str]:
        """Tags with a passage that has no vector of this model."""
        with self._database.read() as connection:
            rows = connection.execute(
                """SELECT tag FROM tags WHERE id IN (
                SELECT tag_id FROM chunks WHERE vector_model IS NULL OR vector_model<>:model
                UNION SELECT tag_id FROM memories WHERE vector_model IS NULL OR vector_model<>:model)""",
                {"model": model_id},
            )
        return [row["tag"] for row in rows]
