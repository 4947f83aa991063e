"""Deleting a caller and reading back, against services that misbehave."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.support.clock import VirtualClock

from supermemory_livekit.erasure.erasure import Erasure, erase_caller, erase_everywhere
from supermemory_livekit.erasure.marks import ErasureMarks
from supermemory_livekit.erasure.write_gate import WriteGate, shut_others
from supermemory_livekit.errors import AccessDenied, CallerErased, RateLimited, ServiceUnavailable
from supermemory_livekit.mirror.embedding_cache import EmbeddingCache
from supermemory_livekit.store import Hit, Profile, StoredMemory
from supermemory_livekit.testing import Fail, ScriptedStore, Work

TAG = "ana"
AT = datetime(2026, 11, 29, tzinfo=timezone.utc)


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def append(store: ScriptedStore | WriteGate, text: str = "[…] Caller: secret") -> str | None:
    return await store.append(TAG, "lk-1", text, dreaming="instant", at=AT, timeout=5)


async def filled() -> ScriptedStore:
    store = ScriptedStore()
    store.processed.add("lk-1")
    store.profiles[TAG] = Profile(static=("secret",))
    store.hits[TAG] = [Hit("secret", 1.0, "m1")]
    await append(store)
    await store.remember(TAG, "secret", dreaming="instant", timeout=5)
    return store


async def test_all_goes_with_the_tag_and_is_read_back_until_quiet(clock: VirtualClock) -> None:
    """Issue: removed, and proved by reading back."""
    store = await filled()
    assert await erase_caller(store, TAG) == Erasure(documents=2, memories=2)
    assert 2 <= clock.elapsed < 5
    for operation in ("list_documents", "memories", "profile", "search"):
        assert len(store.called(operation)) >= 4
    assert len(store.called("delete_tag")) == 1
    assert store.tags == {TAG}


async def test_what_a_service_makes_after_the_deletion_is_deleted_too(clock: VirtualClock) -> None:
    """Issue: also after the service's background work has run: memories may appear when the call is gone already."""
    store = await filled()
    store.processed.clear()

    async def dreams() -> None:
        await asyncio.sleep(6)
        store.stored[TAG] = [StoredMemory("m9", "secret")]

    dreaming = asyncio.ensure_future(dreams())
    done = await erase_caller(store, TAG)
    await dreaming
    assert done.clean
    assert done.memories == 3
    assert store.stored.get(TAG) is None
    assert clock.elapsed >= 16, "quiet for ten seconds after the last find"


async def test_what_cannot_be_deleted_is_told(clock: VirtualClock) -> None:
    """Issue: `clean` says whether anything remains."""
    store = await filled()
    store.always("delete_tag", Fail(AccessDenied("delete_tag answered 403", status=403)))
    store.always("delete_documents", Fail(ServiceUnavailable("delete_documents answered 500", status=500)))
    done = await erase_caller(store, TAG, timeout=10)
    assert not done.clean
    # `m1` and the remembered fact were forgotten by their ids; the profile of the double does not change by itself.
    assert (done.left_documents, done.left_memories, done.left_marks) == (1, 0, 1)
    assert done.shown == ("profile",)
    assert done.problems == (
        "deleting documents: delete_documents answered 500",
        "deleting the container tag: delete_tag answered 403",
    )
    assert clock.elapsed <= 12


async def test_a_busy_service_is_asked_again(clock: VirtualClock) -> None:
    """Design 6: 429 passes."""
    store = await filled()
    busy = Fail(RateLimited("memories answered 429", retry_after=1))
    store.script("memories", busy, busy, busy)
    done = await erase_caller(store, TAG)
    assert done.clean
    assert done.problems == ()


async def test_what_a_client_cannot_list_is_not_called_clean(clock: VirtualClock) -> None:
    """Issue: proved by reading back; where that cannot be done the result says so, and nobody waits for it."""
    store = await filled()
    store.lists = False
    done = await erase_caller(store, TAG)
    assert not done.clean
    assert done.unread == ("documents", "memories")
    assert (done.documents, done.memories) == (2, 2)
    assert clock.elapsed < 5


async def test_a_refused_key_is_not_tried_for_a_minute(clock: VirtualClock) -> None:
    """Design 6: nothing but a person can mend it."""
    store = ScriptedStore()
    denied = Fail(AccessDenied("the service answered 401", status=401))
    for operation in ("list_documents", "memories", "profile", "search", "delete_tag"):
        store.always(operation, denied)
    done = await erase_caller(store, TAG)
    assert done.unread == ("documents", "memories", "profile", "search")
    assert clock.elapsed < 5


async def test_the_cache_of_vectors_is_thrown_away(
    clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0017: a vector tells roughly what its text is about, and nobody knows whose it is."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(tmp_path))
    cache = EmbeddingCache.from_env()
    assert cache is not None
    cache.put("model", {})
    assert cache.path.exists()
    assert (await erase_everywhere(ScriptedStore(), TAG, spool_dir=None, timeout=5)).clean
    assert not cache.path.exists()
    (mark,) = files_in(tmp_path)
    assert (mark.suffix, mark.stat().st_size) == (".erased", 0)
    assert TAG not in mark.name


async def test_an_erasure_elsewhere_on_this_machine_shuts_the_gate(
    clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: a running call does not write the caller back. Without a spool the mark lies beside the cache."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(tmp_path))
    store = ScriptedStore()
    noticed: list[str] = []
    gate = WriteGate(store, marks=ErasureMarks.of_machine(None), erased=noticed.append)
    await asyncio.sleep(1)
    await erase_everywhere(store, TAG, spool_dir=None, timeout=5)
    for _ in range(2):
        with pytest.raises(CallerErased):
            await append(gate)
    with pytest.raises(CallerErased):
        await gate.remember(TAG, "secret", dreaming="instant", timeout=5)
    assert noticed == [TAG]
    assert store.document(TAG, "lk-1") is None
    await asyncio.sleep(1)
    later = WriteGate(store, marks=ErasureMarks.of_machine(None))
    assert await append(later) is not None, "the next call begins anew"


async def test_a_mark_of_the_future_is_not_believed(clock: VirtualClock, tmp_path: Path) -> None:
    """Decision 0017: a clock that was set back must not silence a caller for as long."""
    marks = ErasureMarks([tmp_path])
    await asyncio.sleep(3600)
    marks.set(TAG, time.time())
    assert marks.erased_since(TAG, 0.0)
    clock.jump(-3600)
    assert not marks.erased_since(TAG, 0.0)


async def test_writes_under_way_are_waited_for(clock: VirtualClock) -> None:
    """Issue: an in-flight write must not land after the erasure."""
    store = ScriptedStore().script("append", Work(after=3))
    gate = WriteGate(store)
    writing = asyncio.ensure_future(append(gate))
    await asyncio.sleep(1)
    gate.shut(TAG)
    assert not await gate.writes_ended(TAG, 1)
    assert await gate.writes_ended(TAG, 10)
    assert writing.done()
    assert clock.elapsed == pytest.approx(3)  # pyright: ignore[reportUnknownMemberType]


async def test_a_mark_that_the_disk_does_not_take_is_told(
    clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0017: other processes may write the caller back, and the result must not deny it. The other directory
    gets its mark all the same."""
    (tmp_path / "cache").write_text("a file where a directory should be")
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(tmp_path / "cache"))
    spool = tmp_path / "spool"
    for first, second in ((spool, tmp_path / "cache"), (tmp_path / "cache", spool)):
        monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", str(first))
        done = await erase_everywhere(ScriptedStore(), TAG, spool_dir=second, timeout=5)
        assert not done.clean
        assert done.unmarked
        assert any(problem.startswith("leaving word for other processes: ") for problem in done.problems)
        assert ErasureMarks([spool]).time(TAG) is not None
        for mark in files_in(spool):
            mark.unlink()


async def test_the_gates_of_one_process_are_told_without_any_directory(clock: VirtualClock) -> None:
    """Decision 0017: two memories of one caller, as of a room with two sessions; a later one begins anew."""
    noticed: list[str] = []
    own, other = WriteGate(ScriptedStore()), WriteGate(ScriptedStore(), erased=noticed.append)
    assert not shut_others(TAG, own)
    await asyncio.sleep(0)
    assert noticed == [TAG], "at once, so that it drops what it holds"
    with pytest.raises(CallerErased):
        await append(other)
    assert not own.is_shut(TAG), "that is the work of who erases"
    assert await append(WriteGate(ScriptedStore())) is not None


async def test_a_write_of_another_call_of_the_process_makes_the_end_unclear(clock: VirtualClock) -> None:
    """Decision 0017: nobody waits for it, so the quiet time is the long one."""
    own, other = WriteGate(ScriptedStore()), WriteGate(ScriptedStore().script("append", Work(after=3)))
    writing = asyncio.ensure_future(append(other))
    await asyncio.sleep(1)
    assert shut_others(TAG, own)
    await writing
    assert not shut_others(TAG, own)


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), timezone.utc)


def said(at: datetime) -> str:
    return f"[{at.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}] Caller: Likes tea."


async def test_a_call_that_begins_while_this_reads_back_is_left_alone(clock: VirtualClock) -> None:
    """Decision 0017: the next call begins anew. What was said before and is written late goes all the same."""
    store = await filled()
    before = now()
    await asyncio.sleep(1)
    erasing = asyncio.ensure_future(erase_everywhere(store, TAG, spool_dir=None, timeout=30))
    await asyncio.sleep(1.2)
    await store.append(TAG, "lk-2", said(now()), dreaming="instant", at=before, timeout=5)
    store.hits[TAG] = [Hit("Likes tea.", 1.0)]
    store.profiles[TAG] = Profile(dynamic=("Likes tea.",))
    await append(store, said(before))
    mixed = said(now()) + "\n" + said(before)
    await store.append(TAG, "lk-3", mixed, dreaming="instant", at=before, timeout=5)
    done = await erasing
    assert done.clean, done
    assert done.later == 1
    assert [custom_id for _, custom_id in store.documents] == ["lk-2"]
    assert len(store.called("delete_tag")) == 1


async def test_what_nobody_can_attribute_is_still_found_beside_a_later_call(clock: VirtualClock) -> None:
    """Decision 0017: proof holds for what was before: a memory or a profile that stems from no later call is left."""
    store = ScriptedStore()
    at = time.time() - 1
    await append(store, said(now()))
    store.profiles[TAG] = Profile(static=("secret",))
    done = await erase_caller(store, TAG, timeout=5, at=at)
    assert not done.clean
    assert (done.shown, done.later, done.left_documents) == (("profile",), 1, 0)
    store.profiles.clear()
    store.stored[TAG] = [StoredMemory("m9", "secret")]
    done = await erase_caller(store, TAG, timeout=5, at=at)
    assert store.called("forget"), "without the document it stems from it may be of anybody"
    assert not done.clean
    assert done.left_memories == 1
