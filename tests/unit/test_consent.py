"""What a caller allows: consent, and what is off the record."""

from __future__ import annotations

import pytest

from supermemory_livekit.capture.consent import Consent


def test_a_caller_who_has_to_be_asked_allows_nothing_until_they_agree() -> None:
    """Decision 19: capture="consent"."""
    consent = Consent(asked=True)
    consent.bound("ana")
    assert not consent.given
    consent.answer(True)
    assert consent.given
    consent.answer(False)
    assert not consent.given


def test_a_caller_who_need_not_be_asked_can_still_refuse() -> None:
    """Decision 19: `consent(False)` works with any `capture`."""
    consent = Consent(asked=False)
    consent.bound("ana")
    assert consent.given
    consent.answer(False)
    assert not consent.given


def test_consent_is_the_callers_and_not_the_next_ones() -> None:
    """Decision 19: whoever is bound next is asked anew; who comes back has answered."""
    consent = Consent(asked=True)
    consent.bound("ana")
    consent.answer(True)
    consent.bound("ben")
    assert not consent.given
    consent.bound("ana")
    assert consent.given


def test_consent_given_before_anybody_is_bound_is_the_first_callers() -> None:
    """Decision 19: what a backend knows may be said at once."""
    consent = Consent(asked=True)
    consent.answer(True)
    assert consent.given
    consent.bound("ana")
    assert consent.given
    consent.bound("ben")
    assert not consent.given


def test_a_turn_is_private_when_any_of_it_was_spoken_off_the_record() -> None:
    """Decision 19: a transcript is committed after the words."""
    consent = Consent(asked=False)
    with consent.off_the_record():
        consent.speaks()
    assert not consent.may_search_for("m1")
    assert not consent.keeps("caller", "m1", tag="ana")
    assert not consent.may_search_for("m1")
    assert consent.may_search_for("m2")
    assert consent.keeps("caller", "m2", tag="ana")


def test_the_answer_to_private_words_is_private_when_it_comes_later() -> None:
    """Decision 19: the agent repeats what it was told."""
    consent = Consent(asked=False)
    with consent.off_the_record():
        assert not consent.keeps("caller", "m1", tag="ana")
    assert not consent.keeps("agent", "m2", tag="ana")
    assert consent.keeps("caller", "m3", tag="ana")
    assert consent.keeps("agent", "m4", tag="ana")


def test_a_turn_is_private_when_any_of_it_was_spoken_before_the_caller_agreed() -> None:
    """Decision 19: what was said before it is not kept, and neither is the answer."""
    consent = Consent(asked=True)
    consent.bound("ana")
    consent.speaks()
    consent.answer(True)
    assert not consent.may_search_ahead
    assert not consent.may_search_for("m1")
    assert not consent.keeps("caller", "m1", tag="ana")
    assert not consent.keeps("agent", "m2", tag="ana")
    assert not consent.may_search_for("m1")
    assert consent.keeps("caller", "m3", tag="ana")
    assert consent.keeps("agent", "m4", tag="ana")


def test_words_that_were_answered_before_the_caller_agreed_are_private() -> None:
    """Decision 19: a typed turn is not heard, and its reply may be begun before it is committed."""
    consent = Consent(asked=True)
    consent.bound("ana")
    consent.answered("m1")
    consent.answer(True)
    assert not consent.keeps("caller", "m1", tag="ana")
    assert not consent.keeps("agent", "m2", tag="ana")


def test_agreeing_again_in_mid_turn_does_not_bring_back_what_was_said_before() -> None:
    """Decision 19: `consent(False)` stops."""
    consent = Consent(asked=False)
    consent.bound("ana")
    consent.speaks()
    consent.answer(False)
    consent.answer(True)
    assert not consent.keeps("caller", "m1", tag="ana")


def test_an_answer_is_kept_by_the_consent_of_whom_it_was_given_to() -> None:
    """Decision 19: it is committed when the next caller may be bound, who was not asked yet."""
    consent = Consent(asked=True)
    consent.bound("ana")
    consent.answer(True)
    assert consent.keeps("caller", "m1", tag="ana")
    consent.bound("ben")
    assert consent.keeps("agent", "m2", tag="ana")
    assert not consent.keeps("caller", "m3", tag="ben")


def test_blocks_off_the_record_may_overlap_and_end_by_an_error() -> None:
    """Decision 19: two tasks of one agent may both want it."""
    consent = Consent(asked=False)
    outer = consent.off_the_record()
    outer.__enter__()
    with pytest.raises(ValueError, match="wrong"), consent.off_the_record():
        raise ValueError("wrong")
    assert consent.off
    outer.__exit__(None, None, None)
    assert not consent.off


def test_another_caller_is_on_the_record_though_the_first_went_off() -> None:
    """Decision 19: who asked for it is who it holds for."""
    consent = Consent(asked=False)
    consent.bound("ana")
    consent.caller_goes(off=True)
    consent.bound("ana")
    assert consent.off
    consent.bound("ben")
    assert not consent.off
