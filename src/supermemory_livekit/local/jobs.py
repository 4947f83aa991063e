"""Work that waits in the database, so that it outlives the process that was asked for it.

A job is leased before it is done. A process that dies keeps its lease only until it runs out; then the next
one takes the job over. The result is written in the same transaction that proves the lease is still held, so
that a process which was merely slow cannot write it a second time. Who has a job need not survive a crash of
the machine, since the processes do not either.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from .database import Database
from .texts import now_ms
from .writer import Writer

__all__ = ["Job", "JobQueue", "LeaseLost"]


class LeaseLost(Exception):
    """Somebody else does the job now, or what it was for is gone. Whatever was prepared is thrown away."""


_MAX_DELAY = 600_000
"""Longest pause (ms) before a job that failed is tried again."""


@dataclass(frozen=True)
class Job:
    """A leased job."""

    seq: int
    kind: Literal["embed", "dream", "cut"]
    tag: str
    tag_id: int
    document_seq: int
    generation: int
    attempts: int


class JobQueue:
    """The jobs of all processes on one database. `owner` names this one. Thread-safe; blocks."""

    def __init__(self, database: Database, *, owner: str, lease: float) -> None:
        """`lease` in seconds."""
        self._database = database
        self._owner = owner
        self._lease = round(lease * 1000)

    def next_due(self) -> int | None:
        """When the next job can be taken, in milliseconds since 1970; None when there is none."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT min(CASE WHEN due_at>lease_until THEN due_at ELSE lease_until END) AS at FROM jobs"
            )[0]
        return None if row["at"] is None else int(row["at"])

    def pending(self) -> int:
        """How many jobs are due or being done."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT count(*) AS jobs FROM jobs WHERE due_at<=:now", {"now": now_ms()}
            )[0]
        return int(row["jobs"])

    def claim(self, under_way: Collection[int] = ()) -> Job | None:
        """Lease the job that has been due longest. Those `under_way` here (their `seq`) are not taken again.

        Under one tag facts are made one document after another: their order decides which of two is true.
        """
        now = now_ms()
        values = {
            "now": now,
            "until": now + self._lease,
            "owner": self._owner,
            "under_way": list(under_way),
        }
        statement = """SELECT j.*, t.tag FROM jobs j JOIN tags t ON t.id=j.tag_id
            WHERE j.due_at<=:now AND j.lease_until<=:now
            AND NOT j.seq = ANY(:under_way) AND NOT EXISTS (
              SELECT 1 FROM jobs o WHERE o.tag_id=j.tag_id AND o.kind=j.kind AND o.lease_until>:now)
            ORDER BY CASE j.kind WHEN 'embed' THEN 1 WHEN 'dream' THEN 2 ELSE 3 END, j.due_at, j.seq LIMIT 1"""
        with self._database.read() as connection:
            if not connection.execute(statement, values):
                return None
        with self._database.write_alone(durable=False) as connection:
            found = connection.execute(statement, values)
            if not found:
                return None
            row = found[0]
            # Asked again: whoever held it before may have finished or prolonged it since the row was read.
            leased = connection.execute(
                """UPDATE jobs SET owner=:owner, lease_until=:until, attempts=attempts+1
                WHERE seq=:seq AND generation=:generation AND lease_until<=:now RETURNING seq""",
                {**values, "seq": row["seq"], "generation": row["generation"]},
            )
            if not leased:
                return None
        return Job(
            row["seq"],
            row["kind"],
            row["tag"],
            row["tag_id"],
            row["document_seq"],
            row["generation"],
            row["attempts"] + 1,
        )

    def renew(self) -> None:
        """Extend every lease this process holds."""
        with self._database.read() as connection:
            held = connection.execute(
                "SELECT seq FROM jobs WHERE owner=:owner AND lease_until>:now",
                {"owner": self._owner, "now": now_ms()},
            )
        # One after another: who waits for one row while holding another may wait for somebody who waits for it.
        for row in held:
            with self._database.write(durable=False) as connection:
                connection.execute(
                    """UPDATE jobs SET lease_until=:until
                    WHERE seq=:seq AND owner=:owner AND lease_until>:now""",
                    {
                        "until": now_ms() + self._lease,
                        "seq": row["seq"],
                        "owner": self._owner,
                        "now": now_ms(),
                    },
                )

    def finish(self, writer: Writer, job: Job) -> None:
        """Part of the transaction that writes the result. The job stays due when more work came meanwhile."""
        self.check(writer, job)
        writer.finish_job(job.seq, job.generation)

    def check(self, writer: Writer, job: Job) -> None:
        """Raises `LeaseLost` unless this process still holds the job: the transaction is rolled back then."""
        if writer.tag_id != job.tag_id or not writer.holds_job(job.seq, self._owner):
            raise LeaseLost

    def fail(self, job: Job) -> None:
        """Try again later: after a second, then ever more slowly."""
        self._release(
            job, delay=min(1_000 * 2 ** min(job.attempts - 1, 12), _MAX_DELAY), attempts=job.attempts
        )

    def release(self, job: Job) -> None:
        """Give it back untouched."""
        self._release(job, delay=0, attempts=job.attempts - 1)

    def _release(self, job: Job, *, delay: int, attempts: int) -> None:
        with self._database.write(durable=False) as connection:
            connection.execute(
                """UPDATE jobs SET owner=NULL, lease_until=0,
                attempts=CASE WHEN generation=:generation THEN :attempts ELSE 0 END,
                due_at=CASE WHEN generation=:generation AND :delay>0 THEN :due ELSE due_at END
                WHERE seq=:seq AND owner=:owner""",
                {
                    "generation": job.generation,
                    "attempts": attempts,
                    "delay": delay,
                    "due": now_ms() + delay,
                    "seq": job.seq,
                    "owner": self._owner,
                },
            )
