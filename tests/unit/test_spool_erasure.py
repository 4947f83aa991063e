"""What a spool holds of an erased caller goes for good, and nothing of anybody else."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.capturing import ANA, BEN, START

from supermemory_livekit.erasure.marks import ErasureMarks
from supermemory_livekit.scope import Scope
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.spool.file import take_over
from supermemory_livekit.spool.records import (
    document_record,
    header_record,
    read_records,
    turn_record,
    turns_under,
    without_tag,
)
from supermemory_livekit.spool.spool import Spool, erase_spooled
from supermemory_livekit.transcript import Turn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of POSIX")


def turns(*texts: str, first: int = 0) -> list[Turn]:
    return [Turn("caller", text, START, first + number) for number, text in enumerate(texts)]


def now() -> datetime:
    return datetime.now(timezone.utc)


def left(directory: Path, scope: Scope, *texts: str) -> Path:
    """The file of a process that died."""
    spool = Spool(directory)
    spool.turns(turns(*texts), scope)
    before = set(SpoolDirectory(directory).files())
    spool.close()
    return max(before, key=lambda path: path.stat().st_mtime_ns)


def test_files_of_dead_processes_go_and_those_of_others_stay(tmp_path: Path) -> None:
    """Issue: the spool is empty of the caller after `erase`."""
    mine = left(tmp_path, ANA, "secret one", "secret two")
    other_call = left(tmp_path, Scope(ANA.container_tag, "x", "lk-x"), "secret three")
    held = os.open(mine, os.O_RDONLY)
    others = left(tmp_path, BEN, "words of Ben")
    content = others.read_bytes()
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (3, 0)
    assert not mine.exists()
    assert not other_call.exists()
    assert os.read(held, 100) == b"", "who had the file open sees nothing either"
    os.close(held)
    assert others.read_bytes() == content
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (0, 0)


def test_the_file_of_a_live_process_is_counted_and_left_to_it(tmp_path: Path) -> None:
    """Decision 0017: a live process sees the mark; its file is its own."""
    live = Spool(tmp_path)
    live.turns(turns("secret"), ANA)
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (0, 1)
    (path,) = SpoolDirectory(tmp_path).files()
    live.erase(ANA.container_tag)
    assert not path.exists()
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (0, 0)
    live.turns(turns("words of Ben"), BEN)
    live.close()
    assert len(SpoolDirectory(tmp_path).files()) == 1


def test_a_file_of_several_callers_keeps_the_others(tmp_path: Path) -> None:
    """Decision 0008: files of version 1 held several documents."""
    path = left(tmp_path, BEN, "unused")
    data = b"".join(
        [
            *[header_record(), document_record(0, ANA), document_record(1, BEN)],
            *[turn_record(turn, 0) for turn in turns("secret")],
            *[turn_record(turn, 1) for turn in turns("words of Ben", first=1)],
        ]
    )
    path.write_bytes(data)
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (1, 0)
    kept = path.read_bytes()
    assert b"secret" not in kept
    assert ANA.container_tag.encode() not in kept
    assert read_records(kept).waiting == {
        Scope(BEN.container_tag, BEN.document_id, BEN.document_id): turns("words of Ben", first=1)
    }
    assert path.stat().st_mode & 0o777 == 0o600


def texts_in(path: Path) -> list[str]:
    """What the next process finds to deliver."""
    taken = take_over(path)
    assert taken is not None
    file, found = taken
    file.close()
    return [turn.text for turn in found.pieces]


def test_nobody_delivers_what_a_call_left_that_had_begun_before_the_mark(tmp_path: Path) -> None:
    """Issue: a process that died before it saw the mark does not have its caller written back by the next one, also not
    what was said after the erasure: the live call would have dropped it."""
    spool = Spool(tmp_path)
    spool.turns(turns("secret"), ANA)
    ErasureMarks([tmp_path]).set(ANA.container_tag, time.time())
    after = START + timedelta(days=36_500)
    spool.turns([Turn("caller", "said after the erasure", after, 1)], ANA)
    (path,) = SpoolDirectory(tmp_path).files()
    spool.close()
    assert texts_in(path) == []
    assert not path.exists()


def test_a_call_that_begins_after_the_mark_is_delivered(tmp_path: Path) -> None:
    """Decision 0017: the next call begins anew, also when it begins while the erasure is still at work."""
    ErasureMarks([tmp_path]).set(ANA.container_tag, time.time())
    erased_at = now()
    while now() - erased_at < timedelta(milliseconds=2):  # the file tells milliseconds
        pass
    path = left(tmp_path, ANA, "said in a later call")
    assert erase_spooled(tmp_path, ANA.container_tag, erased_at) == (0, 0)
    assert texts_in(path) == ["said in a later call"]
    assert erase_spooled(tmp_path, ANA.container_tag, now()) == (1, 0)


def test_a_file_that_does_not_tell_when_its_call_began_is_judged_by_its_turns(tmp_path: Path) -> None:
    """Decision 0017: files of earlier versions have no such time."""
    path = left(tmp_path, ANA, "unused")
    after = START + timedelta(days=36_500)
    records = [turns("secret")[0], Turn("caller", "said in a later call", after, 1)]
    path.write_bytes(
        b"".join(
            [header_record(), document_record(0, ANA), *(turn_record(turn, 0) for turn in records)],
        )
    )
    ErasureMarks([tmp_path]).set(ANA.container_tag, time.time())
    assert texts_in(path) == ["said in a later call"]


def test_a_mark_beside_the_cache_holds_for_every_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0017: who erases need not know the spool directories of this machine's workers."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(tmp_path / "cache"))
    path = left(tmp_path / "spool", ANA, "secret")
    ErasureMarks.of_machine(None).set(ANA.container_tag, time.time())
    assert texts_in(path) == []


def test_old_marks_are_swept_up(tmp_path: Path) -> None:
    """Decision 0017: a mark outlives every spool file it can concern, and no longer."""
    marks = ErasureMarks([tmp_path])
    marks.set("ana", time.time())
    (old,) = tmp_path.iterdir()
    os.utime(old, (0, 0))
    marks.set("ben", time.time())
    assert not old.exists()
    assert marks.time("ana") is None
    assert marks.time("ben") is not None


SCOPES = [ANA, BEN, Scope("tag-of-cy", "s", "lk-s")]


@given(
    owners=st.lists(st.integers(0, 3), max_size=12),
    damaged=st.sets(st.integers(0, 11)),
    torn=st.integers(0, 30),
)
def test_what_is_kept_is_the_others_whatever_is_damaged(
    owners: list[int], damaged: set[int], torn: int
) -> None:
    """A damaged record costs only itself, and never keeps the words of an erased caller."""
    head = [header_record(), *(document_record(number, scope) for number, scope in enumerate(SCOPES))]
    lines = [
        turn_record(Turn("caller", f"words of {owner}", START, order), owner if owner < 3 else None)
        for order, owner in enumerate(owners)
    ]
    lines = [b"x" + line if order in damaged else line for order, line in enumerate(lines)]
    data = b"".join([*head, *lines])[: -torn or None]
    kept, count = without_tag(data, ANA.container_tag)
    if not read_records(data).known or ANA.container_tag.encode() not in data.split(b"\n", 2)[1]:
        return
    assert b"words of 0" not in kept
    before = [turn for scope in SCOPES for _, turn in turns_under(data, scope.container_tag)]
    after = [turn for scope in SCOPES for _, turn in turns_under(kept, scope.container_tag)] if kept else []
    assert [turn for turn in before if turn.text != "words of 0"] == after
    assert count == sum(turn.text == "words of 0" for turn in before)
