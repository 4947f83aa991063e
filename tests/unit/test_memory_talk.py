"""Which turns of a call manage the memory, when words come in an unusual order."""

from __future__ import annotations

from datetime import datetime, timezone

from supermemory_livekit.capture.intake import Said
from supermemory_livekit.capture.memory_talk import FOLLOW_UPS, MemoryTalk
from supermemory_livekit.transcript import Role


def take(talk: MemoryTalk, role: Role) -> Said | None:
    """A turn of the call; None when it is kept out."""
    talk.begins(role)
    if talk.keeps_out():
        return None
    said = Said(role, "words", datetime(2026, 1, 1, tzinfo=timezone.utc), None)
    talk.add(said)
    return said


def test_words_that_are_reported_after_the_model_acted_on_them_are_kept_out() -> None:
    """Decision 19: a realtime model reports what it heard when it likes."""
    talk = MemoryTalk()
    assert take(talk, "agent")
    talk.tries()
    talk.succeeds(words_may_come=True)
    assert take(talk, "caller") is None
    assert take(talk, "agent") is None
    assert take(talk, "caller")
    assert take(talk, "agent")


def test_the_callers_next_turn_is_taken_when_their_words_were_there() -> None:
    """Decision 19: only the exchange is kept out."""
    talk = MemoryTalk()
    asked = take(talk, "caller")
    talk.tries()
    assert talk.succeeds(words_may_come=True) == [asked]
    assert take(talk, "agent") is None
    assert take(talk, "caller")


def test_a_program_that_forgets_something_silences_nobody() -> None:
    """Decision 19: `memory.forget` may be called when nothing was said about it."""
    talk = MemoryTalk()
    talk.tries()
    assert talk.succeeds(words_may_come=False) == []
    assert take(talk, "caller")


def test_what_was_tried_may_succeed_after_two_questions_back() -> None:
    """Decision 19: "which one?", "the old one or the new one?"; all of it holds what is to be forgotten."""
    talk = MemoryTalk()
    turns = [take(talk, "caller")]
    talk.tries()
    turns += [take(talk, role) for role in ("agent", "caller", "agent", "caller")]
    assert talk.undecided
    assert talk.succeeds(words_may_come=False) == turns
    assert not talk.undecided


def test_a_vain_try_holds_nothing_back_for_longer_than_a_few_exchanges() -> None:
    """Decision 19: an agent that never succeeds must not keep a call from being written."""
    talk = MemoryTalk()
    take(talk, "caller")
    talk.tries()
    for _ in range(FOLLOW_UPS):
        take(talk, "agent")
        take(talk, "caller")
        assert talk.undecided
    take(talk, "agent")
    last = take(talk, "caller")
    assert not talk.undecided
    assert talk.succeeds(words_may_come=False) == [last]
