"""A small soak, and the count it ends with: a count that finds nothing would make the soak worthless."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from bench.soak.check import Verdict, compare
from bench.soak.faults import HOLD, LATEST, Faults
from bench.soak.plan import Size, planned_calls, planned_kills
from bench.soak.truth import Spoken

REPOSITORY = Path(__file__).resolve().parents[2]

DOCUMENT = ("caller_1", "lk-room")


def turn(number: int, *, document: tuple[str, str] = DOCUMENT, confirmed: bool = True) -> Spoken:
    """The turn that comes as this number, spoken in this second."""
    return Spoken(
        token=f"w0g0n{number}",
        tag=document[0],
        document=document[1],
        role="Caller",
        text=f"w0g0n{number} I live in Porto.",
        at=float(number),
        order=number * 1_000_000_000,
        confirmed=confirmed,
        worker=(0, 0),
        session_id="room",
    )


def line(turn: Spoken) -> str:
    return f"[2026-11-29T17:16:{round(turn.at):02}.000Z] {turn.role}: {turn.text}"


def counted(
    *stored: Spoken,
    spoken: tuple[Spoken, ...],
    document: tuple[str, str] = DOCUMENT,
    excuse: str | None = None,
) -> Verdict:
    content = "\n".join(map(line, stored))
    return compare({one.token: one for one in spoken}, {document: content}, lambda _: excuse)


ONE, TWO, THREE = turn(1), turn(2), turn(3)


def test_the_count_of_a_document_that_holds_each_turn_once_and_in_order_is_zero() -> None:
    """Decision 0010: what is counted."""
    assert counted(ONE, TWO, THREE, spoken=(ONE, TWO, THREE)).good


def test_the_count_finds_what_is_lost_doubled_out_of_order_or_somebody_elses() -> None:
    """Decision 0010: what is counted."""
    spoken = (ONE, TWO, THREE)
    assert counted(ONE, THREE, spoken=spoken).lost == [TWO.token]
    assert counted(ONE, TWO, TWO, THREE, spoken=spoken).doubled == [TWO.token]
    assert counted(ONE, THREE, TWO, spoken=spoken).reordered == [TWO.token]
    assert counted(ONE, TWO, THREE, spoken=spoken, document=("caller_2", "lk-room")).crossed
    assert counted(ONE, TWO, THREE, spoken=spoken, document=("caller_1", "lk-other")).crossed
    assert counted(ONE, TWO, turn(4), spoken=(ONE, TWO)).crossed, "a line that nobody spoke"


def test_words_that_were_changed_on_their_way_count_as_lost() -> None:
    """Decision 0010: what is counted."""
    changed = Spoken(**{**vars(TWO), "text": f"{TWO.token} I live in"})
    assert counted(ONE, changed, spoken=(ONE, TWO)).lost == [TWO.token]


def test_a_turn_announced_by_a_process_that_was_killed_may_be_absent_and_never_twice() -> None:
    """Decision 0010: a kill between the truth and the capture makes one turn uncertain, not wrong."""
    uncertain = turn(2, confirmed=False)
    assert counted(ONE, spoken=(ONE, uncertain)).good
    assert counted(ONE, uncertain, spoken=(ONE, uncertain)).good
    assert counted(ONE, uncertain, uncertain, spoken=(ONE, uncertain)).doubled == [uncertain.token]


def test_excused_turns_are_counted_apart() -> None:
    """Decision 0010: without a spool, what a killed process had no answer for is excused, and told."""
    verdict = counted(ONE, spoken=(ONE, TWO), excuse="unanswered at SIGKILL")
    assert verdict.good
    assert verdict.excused == {"unanswered at SIGKILL": 1}


def test_the_same_seed_plans_the_same_soak() -> None:
    """Decision 0010: everything is drawn from the seed."""
    size = Size(seed=7, calls=9, turns=90, kills=5, workers=2, at_once=3, pace=0.0, spool=True)
    assert planned_calls(size) == planned_calls(size)
    assert planned_kills(size) == planned_kills(size)
    one, other = Faults(7, 0.3), Faults(7, 0.3)
    drawn = [one.draw() for _ in range(500)]
    assert drawn == [other.draw() for _ in range(500)]
    assert sum(call.turns for calls in planned_calls(size) for call in calls) >= size.turns
    late = [fault for fault in drawn if fault.late is not None]
    assert late, "no request is carried out late"
    assert all((fault.late or 0) <= LATEST and fault.delay <= HOLD for fault in late)


@pytest.mark.timeout(300)
async def test_a_small_soak_with_faults_and_kills_finds_every_turn_once(tmp_path: Path) -> None:
    """Decision 0010: processes that are killed lose and double nothing."""
    command = "-m bench.soak --seed 9 --calls 4 --turns 32 --kills 2 --workers 1 --pace 0.2 --limit 240"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *[*command.split(), "--keep", str(tmp_path / "soak")],
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed, _ = await process.communicate()
    finally:
        # It leads a group of its own, with the processes that it started.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    told = printed.decode()
    assert process.returncode in (0, 1), told
    counts = dict(one.split("=") for one in told.splitlines()[-1].split())
    assert process.returncode == 0, told
    assert int(counts["turns"]) >= 32, told
    assert int(counts["faults"]) > 0, told
    assert counts["kills"] == "2", told
    assert {
        name: counts[name] for name in ("lost", "doubled", "reordered", "crossed", "unsent_in_spool")
    } == dict.fromkeys(("lost", "doubled", "reordered", "crossed", "unsent_in_spool"), "0")
