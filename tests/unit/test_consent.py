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
    assert not consent.allows_search_ahead
    assert consent.turn_over()
    assert consent.allows_search_ahead
    assert not consent.turn_over()


def test_a_turn_during_which_it_went_off_the_record_is_private_though_nothing_was_reported_then() -> None:
    """Decision 19: LiveKit reports words when it likes; the caller spoke all the time."""
    consent = Consent(asked=False)
    consent.bound("ana")
    for go in (lambda: consent.off_the_record().__enter__(), lambda: consent.caller_goes(off=True)):
        consent.speaks()
        go()
        assert consent.turn_over()


def test_a_turn_is_private_when_any_of_it_was_spoken_before_the_caller_agreed() -> None:
    """Decision 19: what was said before it is not kept."""
    consent = Consent(asked=True)
    consent.bound("ana")
    consent.speaks()
    consent.answer(True)
    assert not consent.allows_search_ahead
    assert consent.turn_over()
    consent.speaks()
    assert not consent.turn_over()


def test_agreeing_again_in_mid_turn_does_not_bring_back_what_was_said_before() -> None:
    """Decision 19: `consent(False)` stops."""
    consent = Consent(asked=False)
    consent.bound("ana")
    consent.speaks()
    consent.answer(False)
    consent.answer(True)
    assert consent.turn_over()


def test_the_first_answer_is_for_whom_the_participant_is_who_gave_it() -> None:
    """Decision 19: consent is a caller's; another one may have taken the line before anybody was bound."""
    consent = Consent(asked=True)
    consent.answer(True, by="ana")
    consent.bound("ben-tag", by="ben")
    assert not consent.given


@pytest.mark.parametrize(("same", "agreed", "given"), [("yes", True, True), ("perhaps", True, False)])
def test_another_tag_of_the_same_person_keeps_what_they_agreed_to(
    same: str, agreed: bool, given: bool
) -> None:
    """Decision 19: consent goes along with an attribute that arrives late, and not with a tag that may be another's."""
    consent = Consent(asked=True)
    consent.bound("identity")
    consent.answer(agreed)
    consent.renamed("identity", "attribute", refusals_only=same == "perhaps")
    consent.bound("attribute")
    assert consent.given is given


def test_what_a_person_refused_holds_under_any_tag_of_theirs() -> None:
    """Decision 19: in doubt it is the same person."""
    consent = Consent(asked=False)
    consent.bound("identity")
    consent.answer(False)
    consent.caller_goes(off=True)
    consent.renamed("identity", "account", refusals_only=True)
    consent.bound("account")
    assert not consent.given
    assert consent.off


def test_off_the_record_before_anybody_is_bound_lasts_while_another_is_on_the_line() -> None:
    """Decision 19: it is the first caller's."""
    consent = Consent(asked=False)
    consent.caller_goes(off=True)
    consent.bound("ana")
    consent.bound("ben")
    assert not consent.off
    consent.bound("ana")
    assert consent.off


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
