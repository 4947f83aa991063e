"""Calls that an older version has cut into pieces of three turns are cut anew in the background."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from supermemory_livekit.local.location import database_at
from supermemory_livekit.local.texts import new_id, now_ms
from supermemory_livekit.retrieval import windows

from .support import Service, call, execute, word_model

DATABASES = ("sqlite", "postgresql")

CALL = call("C: I sail.", "A: How nice.", "C: On the lake.", "A: Alone?", "C: With my dog.", "A: Good.")
TURNS = CALL.split("\n")

OPENED = """
import asyncio, sys, time
import numpy as np
from supermemory_livekit.local import Engine

class Model:
    model_id, dimensions = "stops", 4

    def embed(self, texts):
        if not all("\\n" in text for text in texts):
            print("embeds a turn", flush=True)
            time.sleep(60)
        return np.ones((len(texts), 4), dtype=np.float32)

async def main():
    await Engine(sys.argv[1], load=Model).start()
    await asyncio.sleep(60)

asyncio.run(main())
"""
"""Stops in the middle: as soon as something has pieces of one turn."""


def killed_in_the_middle(location: Path | str) -> None:
    command = [sys.executable, "-c", OPENED, str(location)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "embeds a turn"
        process.send_signal(signal.SIGKILL)


def as_an_older_version_left_it(location: Path | str) -> None:
    """Its pieces, and its number of the format."""
    database = database_at(location)
    database.open()
    with database.write() as connection:
        connection.execute("DELETE FROM jobs")
        for row in connection.execute(
            "SELECT DISTINCT d.* FROM documents d JOIN chunks c ON c.document_seq=d.seq"
        ):
            connection.execute("DELETE FROM chunks WHERE document_seq=:seq", {"seq": row["seq"]})
            for start, stop in windows(row["content"]):
                connection.execute(
                    """INSERT INTO chunks (id, tag_id, document_seq, start, stop, text, at, changed)
                    VALUES (:id, :tag, :seq, :start, :stop, :text, 0, 1)""",
                    {
                        "id": new_id(),
                        "tag": row["tag_id"],
                        "seq": row["seq"],
                        "start": start,
                        "stop": stop,
                        "text": row["content"][start:stop],
                    },
                )
        older = (
            "PRAGMA user_version=2"
            if isinstance(location, Path)
            else "UPDATE supermemory_format SET version=1"
        )
        connection.execute(older)
    database.close()


def pieces(location: Path | str) -> list[str]:
    rows = execute(location, "SELECT text FROM chunks ORDER BY document_seq, start")
    return [row["text"] for row in rows]


async def test_stored_calls_get_pieces_of_one_turn_and_vectors_for_them(
    serve: Callable[..., Service], location: Path | str
) -> None:
    """Decision 0013: a piece of a call is one turn, whichever version stored it."""
    service = serve()
    for number in range(3):
        await service.sdk.add(content=CALL, container_tag="ana", custom_id=f"lk-{number}")
    await service.sdk.add(content=CALL, container_tag="ben", custom_id="lk-3")
    await service.sdk.close()
    as_an_older_version_left_it(location)
    later = serve(load=word_model)
    await later.engine.start()
    await later.settled()
    assert pieces(location) == TURNS * 4
    without = execute(location, "SELECT seq FROM chunks WHERE vector IS NULL")
    assert without == []
    assert (await later.found("ben", "canine", limit=1))[0].count("\n") < len(TURNS)
    updated = execute(location, "SELECT seq FROM documents WHERE updated_at<>created_at")
    assert updated == []


async def test_what_is_no_call_keeps_its_pieces_and_what_was_forgotten_stays_so(
    serve: Callable[..., Service], location: Path | str
) -> None:
    """Decision 0003: a note that says a forgotten fact and nothing else is not found any more."""
    service = serve()
    note = "\n".join(f"Line {number} of a long note, with some words to fill it." for number in range(40))
    await service.sdk.add(content=note, container_tag="ana", custom_id="note")
    await service.sdk.add(content="Likes tea,\nand cake", container_tag="ana", dreaming="instant")
    await service.settled()
    forgotten = {"containerTag": "ana", "content": "Likes tea,\nand cake"}
    assert (await service.http.request("DELETE", "/v4/memories", json=forgotten)).is_success
    before = execute(location, "SELECT id, start, text FROM chunks ORDER BY start")
    assert "tea" not in "".join(row["text"] for row in before)
    execute(
        location, "INSERT INTO jobs (kind, tag_id, document_seq, due_at) SELECT 'cut', id, 0, 0 FROM tags"
    )
    await service.settled()
    after = execute(location, "SELECT id, start, text FROM chunks ORDER BY start")
    assert [dict(row) for row in after] == [dict(row) for row in before]


async def test_a_process_killed_meanwhile_leaves_whole_calls_and_the_next_goes_on(
    serve: Callable[..., Service], location: Path | str
) -> None:
    """Brief of the embedded service: kill -9 at any time. Old pieces are searched until there are new ones."""
    service = serve()
    names = [f"lk-{number}" for number in range(30)]
    for name in names:
        await service.sdk.add(content=CALL, container_tag="ana", custom_id=name)
    await service.sdk.close()
    as_an_older_version_left_it(location)
    killed_in_the_middle(location)
    of_calls = execute(
        location,
        """SELECT count(*) AS pieces, sum(CASE WHEN text LIKE :lines THEN 1 ELSE 0 END) AS old
        FROM chunks GROUP BY document_seq""",
        lines="%\n%",
    )
    states = [(row["pieces"], row["old"]) for row in of_calls]
    whole = {(len(TURNS), 0), (len(list(windows(CALL))), len(list(windows(CALL))))}
    assert set(states) == whole, "one state or the other, and the process was killed before all was done"
    leases = {row["kind"]: row["lease_until"] for row in execute(location, "SELECT * FROM jobs")}
    assert leases["cut"] > now_ms(), "the killed process has the job"
    execute(location, "UPDATE jobs SET lease_until=0")
    later = serve()
    assert len(await later.found("ana", "dog", limit=100)) >= len(names)
    await later.settled()
    assert pieces(location) == TURNS * len(names)
