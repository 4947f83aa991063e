"""The files of a spool: what a torn one still holds, how large they grow, who may write to a document."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.clock import VirtualClock
from tests.unit.capturing import ANA, BEN, START, Call, stored

from supermemory_livekit.errors import ServiceUnavailable
from supermemory_livekit.params import InputParams
from supermemory_livekit.spool.directory import MADE, SpoolDirectory, document_key
from supermemory_livekit.spool.document_lock import DocumentLock
from supermemory_livekit.spool.file import SpoolFile, take_over
from supermemory_livekit.spool.records import read_records
from supermemory_livekit.spool.recovery import Recovered, recover
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.testing import Fail, Hang, ScriptedStore, Work
from supermemory_livekit.transcript import Turn, next_chunk

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of POSIX"),
    pytest.mark.usefixtures("clock"),
]

ANA_ON_DISK = replace(ANA, session_id=ANA.document_id)
"""A file does not tell the session id."""

DOWN = ServiceUnavailable("append answered 503", status=503)


def turns(count: int, *, size: int = 5) -> list[Turn]:
    return [
        Turn("caller", f"{n:04} " + "x" * size, START + timedelta(seconds=n), order=n) for n in range(count)
    ]


def files(directory: Path) -> list[Path]:
    return SpoolDirectory(directory).files()


def spooled(store: ScriptedStore, directory: Path) -> Call:
    return Call(store, params=InputParams(spool_dir=directory))


# -- what a file holds ---------------------------------------------------------------------------------------


def test_a_file_that_ends_anywhere_holds_what_was_written_before(tmp_path: Path) -> None:
    """Issue: a torn last record loses nothing else. Every length of a file that a death can leave."""
    said = turns(4)
    lines = next_chunk(said[:2], after=None)
    spool = Spool(tmp_path)
    ends: list[tuple[int, set[int], set[int]]] = []
    (waiting, sent) = (set[int](), set[int]())

    def note() -> None:
        (path,) = files(tmp_path)
        ends.append((path.stat().st_size - 1, set(waiting), set(sent)))  # its last line end may be missing

    for turn in said:
        spool.turns([turn], ANA)
        waiting.add(turn.order)
        note()
    spool.sending(ANA, lines)
    waiting, sent = {2, 3}, {0, 1}
    note()
    spool.acked(ANA, said[:1])
    sent = {1}
    note()
    spool.refused(ANA, said[1:2])
    sent = set()
    note()
    (path,) = files(tmp_path)
    data = path.read_bytes()
    for length in range(ends[0][0], len(data) + 1):
        left = read_records(data[:length])
        _, waiting, sent = max((end for end in ends if end[0] <= length), key=lambda end: end[0])
        assert {turn.order for turn in left.waiting.get(_same(left.waiting), [])} == waiting
        assert {line.turn.order for line in left.sent.get(_same(left.sent), [])} == sent
    spool.close()


def _same(by_scope: Any) -> Any:
    """The only scope in it."""
    return next(iter(by_scope), None)


def test_a_damaged_record_in_the_middle_costs_itself_alone(tmp_path: Path) -> None:
    """0008: every record has a checksum of its own."""
    spool = Spool(tmp_path)
    spool.turns(turns(3), ANA)
    spool.close()
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"0001 ", b"0009 "))
    left = read_records(path.read_bytes())
    assert ([turn.order for turn in left.pieces], left.damaged) == ([0, 2], 1)


def _version_1(records: Sequence[dict[str, Any]]) -> bytes:
    lines = [json.dumps(record, separators=(",", ":")).encode() for record in records]
    return b"".join(b"%08x %s\n" % (zlib.crc32(line), line) for line in lines)


async def test_a_file_of_version_1_is_delivered(tmp_path: Path) -> None:
    """0008: it has several documents, no key in its name, and no time of sending."""
    at = int(START.timestamp() * 1000)
    turn = {"t": "turn", "p": 1, "of": 1, "role": "caller", "i": False}
    path = tmp_path / "0123456789abcdef0123456789abcdef.spool"
    path.write_bytes(
        _version_1(
            [
                {"format": "supermemory-livekit-spool", "version": 1, "created": at},
                {"t": "doc", "d": 0, "tag": ANA.container_tag, "doc": ANA.document_id},
                {**turn, "d": 0, "n": 0, "at": at, "text": "sent, not stored"},
                {"t": "sent", "d": 0, "lines": [[0, 1, at]]},
                {"t": "doc", "d": 1, "tag": BEN.container_tag, "doc": BEN.document_id},
                {**turn, "d": 1, "n": 1, "at": at, "text": "of another"},
                {**turn, "d": None, "n": 2, "at": at, "text": "came first"},
                {"t": "bound", "d": 0},
            ]
        )
    )
    path.chmod(0o600)
    store = ScriptedStore()
    result = await recover(store, tmp_path)
    assert (result.delivered, result.left) == (3, 0)
    assert stored(store) == [("caller", "sent, not stored"), ("caller", "came first")]
    assert stored(store, BEN) == [("caller", "of another")]
    assert not files(tmp_path)


async def test_words_before_a_caller_is_bound_are_kept_too(tmp_path: Path) -> None:
    """0008: they get their document when the caller is known; without one they are reported."""
    store = ScriptedStore()
    call = spooled(store, tmp_path)
    call.say("caller", "who is there", scope=None)
    assert len(files(tmp_path)) == 1
    call.capture.bound(ANA)
    await call.capture.aclose(0)
    unknown = spooled(store, tmp_path)
    unknown.say("caller", "nobody", scope=None)
    await unknown.capture.aclose(0)
    result = await recover(store, tmp_path)
    assert (result.delivered, result.left, result.unscoped) == (1, 0, 1)
    assert stored(store) == [("caller", "who is there")]


# -- what is not to be stored after all ------------------------------------------------------------------------


def test_no_word_of_a_dropped_turn_stays_on_the_disk(tmp_path: Path) -> None:
    """Decision 19: withdrawn, off the record or discarded; the file's old blocks are overwritten as well."""
    spool = Spool(tmp_path)
    said = [Turn("caller", text, START, order=n) for n, text in enumerate(("kept one", "secret", "kept two"))]
    spool.turns(said, ANA)
    sent = next_chunk(said[:1], after=None)
    spool.sending(ANA, sent)
    (path,) = files(tmp_path)
    with path.open("rb") as before:
        spool.dropped(ANA, [said[1]])
        assert before.read() == b""
    assert files(tmp_path) == [path]
    assert b"secret" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert take_over(path) is None, "it is still the file of a live call"
    spool.turns([Turn("caller", "kept three", START, order=3)], ANA)
    left = read_records(path.read_bytes())
    assert [line.text for line in left.sent[ANA_ON_DISK]] == [sent[0].text]
    assert [turn.text for turn in left.waiting[ANA_ON_DISK]] == ["kept two", "kept three"]
    assert left.damaged == 0
    spool.dropped(ANA, [said[0], said[2], Turn("caller", "kept three", START, order=3)])
    assert b"kept" not in path.read_bytes()
    spool.close()
    assert files(tmp_path) == []


async def test_a_dropped_turn_is_delivered_by_nobody_when_its_file_cannot_be_written_anew(
    tmp_path: Path,
) -> None:
    """Decision 19: a full disk may keep words from being taken off it, and has nobody store them."""
    spool = Spool(tmp_path)
    said = [Turn("caller", text, START, order=n) for n, text in enumerate(("kept", "secret"))]
    spool.turns(said, ANA)
    (path,) = files(tmp_path)
    path.with_suffix(MADE).mkdir()
    spool.dropped(ANA, [said[1]])
    spool.close()
    path.with_suffix(MADE).rmdir()
    store = ScriptedStore()
    assert (await recover(store, tmp_path)).delivered == 1
    assert stored(store) == [("caller", "kept")]


# -- how large they grow -------------------------------------------------------------------------------------


def test_a_file_that_grows_is_written_anew_with_what_is_open(tmp_path: Path) -> None:
    """0008: a long call whose last turns are never all acknowledged does not fill the disk."""
    spool = Spool(tmp_path)
    said = turns(300, size=20_000)
    for before, turn in zip([None, *said], said, strict=False):
        spool.turns([turn], ANA)
        spool.sending(ANA, next_chunk([turn], after=None))
        if before is not None:
            spool.acked(ANA, [before])
    (path,) = files(tmp_path)
    assert path.stat().st_size < 1_100_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert take_over(path) is None
    left = read_records(path.read_bytes())
    assert [line.text for lines in left.sent.values() for line in lines] == [
        next_chunk(said[-1:], after=None)[0].text
    ]
    assert left.sent_at is not None
    spool.close()
    assert take_over(path) is not None


@pytest.mark.parametrize("bound", [{"max_files": 2}, {"max_bytes": 150_000}], ids=str)
def test_a_full_directory_takes_no_more_and_says_how_much(
    bound: dict[str, int], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """0008: what is over is refused and counted; what lies there stays."""
    for number in range(2):
        spool = Spool(tmp_path)
        spool.turns(turns(1, size=80_000), ANA)
        spool.close()
        assert len(files(tmp_path)) == number + 1
    stats = Stats()
    full = Spool(SpoolDirectory(tmp_path, **bound), stats)
    assert not full.turns(turns(3), ANA)
    assert stats.turns_unspooled == 3
    assert len(files(tmp_path)) == 2
    assert len(caplog.records) == 1


async def test_what_the_spool_does_not_take_is_stored_all_the_same(tmp_path: Path) -> None:
    """0008: nothing here raises into the call."""
    store = ScriptedStore()
    place = tmp_path / "a file"
    place.write_text("no directory")
    call = spooled(store, place)
    call.exchange(1)
    await asyncio.sleep(1)
    assert stored(store) == call.said[ANA]
    assert call.stats.turns_unspooled == 2
    await call.capture.aclose(8)


async def test_what_processes_leave_that_die_in_between_is_swept_up(tmp_path: Path) -> None:
    """0008: a file in the making and a lock have no owner when their process is dead."""
    old, young, lock = tmp_path / "a.new", tmp_path / "b.new", tmp_path / "c.lock"
    for path in (old, young, lock):
        path.touch(0o600)
    os.utime(old, (0, 0))
    held = DocumentLock(tmp_path, "d")
    assert held.try_acquire()
    await recover(ScriptedStore(), tmp_path)
    assert {path.name for path in SpoolDirectory(tmp_path).path.glob("*")} == {"b.new", "d.lock"}
    held.release()


def test_a_file_of_a_dead_process_is_read_by_one_only(tmp_path: Path) -> None:
    """0008: who has it has its lock."""
    file = SpoolFile.create(SpoolDirectory(tmp_path), ANA)
    file.turns(turns(1))
    file.close()
    taken = take_over(file.path)
    assert taken is not None
    assert take_over(file.path) is None
    taken[0].close()


# -- who may write to a document -----------------------------------------------------------------------------


async def test_a_lock_is_held_by_one_and_leaves_no_file(tmp_path: Path) -> None:
    """0008: one writer per document."""
    one, other = DocumentLock(tmp_path, "doc"), DocumentLock(tmp_path, "doc")
    assert one.try_acquire()
    assert not other.try_acquire()
    assert not await other.acquire(patience=1.0)
    one.release()
    assert await other.acquire(patience=0.0)
    other.release()
    assert not SpoolDirectory(tmp_path).path.joinpath("doc.lock").exists()


async def test_two_live_calls_of_one_document_do_not_overtake_each_other(tmp_path: Path) -> None:
    """0008: a reconnect while the first call's words still wait comes after them."""
    store = ScriptedStore().script("append", Work(), Fail(DOWN), Fail(DOWN))
    first, second = spooled(store, tmp_path), spooled(store, tmp_path)
    first.exchange(1)
    await asyncio.sleep(0.1)
    first.exchange(2)
    await asyncio.sleep(0.1)
    second.exchange(3)
    await asyncio.sleep(30)
    assert stored(store) == first.said[ANA] + second.said[ANA]
    await first.capture.aclose(8)
    await second.capture.aclose(8)


@pytest.mark.parametrize("committed", [True, False])
async def test_the_next_call_delivers_what_is_left_before_its_own(committed: bool, tmp_path: Path) -> None:
    """0008: what is said later, in whichever process, does not overtake; the reply waits for none of it."""
    store = ScriptedStore().script("append", Work(), Hang(committed=committed))
    first = spooled(store, tmp_path)
    first.exchange(1)
    await asyncio.sleep(0.1)
    first.exchange(2)
    await asyncio.sleep(0.1)
    first.say("caller", "question 3")
    await first.capture.aclose(0)
    second = spooled(store, tmp_path)
    second.exchange(4)
    await asyncio.sleep(0.1)
    third = spooled(store, tmp_path)
    third.say("caller", "question 5")
    third.capture.wake()
    await asyncio.sleep(60)
    # Of two living calls that wait for the dead one's words, either may be first.
    waiting = (second.said[ANA] + third.said[ANA], third.said[ANA] + second.said[ANA])
    assert stored(store) in [first.said[ANA] + later for later in waiting]
    for call in (second, third):
        await call.capture.aclose(8)
    assert not files(tmp_path)


async def test_a_line_of_a_killed_process_is_believed_missing_when_nothing_can_come_any_more(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """0005: its request may run until its deadline, and be carried out late; only then it is sent again."""
    store = ScriptedStore().script("append", Work(), Hang())
    call = spooled(store, tmp_path)
    call.exchange(1)
    await asyncio.sleep(0.1)
    call.exchange(2)
    await asyncio.sleep(0.1)
    sent_at = clock.elapsed
    await call.capture.aclose(0)
    assert (await recover(store, tmp_path)).delivered == 2
    assert clock.elapsed - sent_at >= 10.0
    assert stored(store) == call.said[ANA]


async def test_recovery_waits_for_a_live_writer_and_reports_what_it_cannot_deliver(tmp_path: Path) -> None:
    """0008: two who deliver at once do not interleave."""
    store = ScriptedStore()
    dead = spooled(store, tmp_path)
    dead.exchange(1)
    await dead.capture.aclose(0)
    held = DocumentLock(tmp_path, document_key(ANA))
    assert held.try_acquire()
    result = await recover(store, tmp_path)
    assert (result.delivered, result.left, len(store.called("append"))) == (0, 2, 0)
    held.release()
    both = await asyncio.gather(recover(store, tmp_path), recover(store, tmp_path))
    assert sum(result.delivered for result in both) == 2
    assert stored(store) == dead.said[ANA]


async def test_many_documents_are_delivered_beside_one_another(tmp_path: Path, clock: VirtualClock) -> None:
    """0008: a host that comes back with many broken calls does not wait for each in turn."""
    store = ScriptedStore().always("append", Hang())
    calls = [spooled(store, tmp_path / "spool") for _ in range(12)]
    scopes = [type(ANA)(f"tag-{number}", "room", f"lk-{number}") for number in range(12)]
    for call, scope in zip(calls, scopes, strict=True):
        call.exchange(1, scope=scope)
    await asyncio.sleep(0.1)
    for call in calls:
        await call.capture.aclose(0)
    store.always("append", None)
    began = clock.elapsed
    assert (await recover(store, tmp_path / "spool")).delivered == 24
    assert clock.elapsed - began < 20


async def test_an_emptied_file_is_ours_however_many_processes_die_over_it(tmp_path: Path) -> None:
    """0008: a process dies when all was acknowledged and the file not deleted yet, and so does the next one."""
    file = SpoolFile.create(SpoolDirectory(tmp_path), ANA)
    path = file.path
    path.write_bytes(b"")
    os.close(file._fd)  # pyright: ignore[reportPrivateUsage]
    first = take_over(path)
    assert first is not None
    os.close(first[0]._fd)  # pyright: ignore[reportPrivateUsage]
    assert path.read_bytes() == b""
    # What the versions before this one left of such a file.
    path.write_bytes(b"\n")
    assert await recover(ScriptedStore(), tmp_path) == Recovered()
    assert not files(tmp_path)
