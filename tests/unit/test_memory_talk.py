"""Which turns of a call manage the memory, when words come in an unusual order."""

from __future__ import annotations

from datetime import datetime, timezone

from supermemory_livekit.intake import Said
from supermemory_livekit.memory_talk import MemoryTalk
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


def test_two_exchanges_after_a_vain_try_everything_is_decided() -> None:
    """Decision 19: held back until the caller's next turn has been answered, and no longer."""
    talk = MemoryTalk()
    first = take(talk, "caller")
    talk.tries()
    second = take(talk, "agent")
    third = take(talk, "caller")
    assert talk.undecided
    fourth = take(talk, "caller")
    assert not talk.undecided
    assert talk.succeeds(words_may_come=False) == [fourth]
    assert None not in (first, second, third)
