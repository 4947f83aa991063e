"""Identities that say that nobody knows who calls."""

from __future__ import annotations

import pytest
from tests.support.rooms import Person

from supermemory_livekit.scope import Scopes, call_tag, container_tag, is_nobody


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "  ",
        "anonymous",
        "Anonymous",
        "sip_anonymous",
        "sip:anonymous@anonymous.invalid",
        "<sip:anonymous@10.0.0.1;user=phone>",
        "anonymous@anonymous.invalid",
        "+anonymous",
        "unknown",
        "Unknown Caller",
        "RESTRICTED",
        "private",
        "Private_Number",
        "unavailable",
        "withheld",
        "No Caller ID",
        "undefined",
        "sip_",
        "+266696687",
        "266696687",
        "sip_+266696687",
        "+7378742833",
        "+86 282 452 253",
        "+8656696",
        "0000000000",
        "+0000000",
        "sip_+00000000000",
        "ａｎｏｎｙｍｏｕｓ",
        "sip_0",
        "sip:000",
        '"Anonymous" <sip:anonymous@anonymous.invalid>',
        '"Anna" <sip:anonymous@anonymous.invalid>',
        "anony\u200bmous",
        " \u200b\u2060",
        "out-of-area",
        "caller unknown",
        "AnonymousCaller",
        "sip_asserted-unknown",
        "sip_id_unavailable",
        "anonymous user",
    ],
)
def test_an_identity_that_names_nobody_is_known_as_such(identity: str) -> None:
    """Issue: withheld and anonymous numbers, empty identities."""
    assert is_nobody(identity)


@pytest.mark.parametrize(
    "identity",
    [
        "ana",
        "anonymous_ana",
        "user_1",
        "0",
        "007",
        "+15551234567",
        "sip_+4915112345678",
        "sip:+4930123@example.com",
        "8656696",  # a local number without a country code
        "private@example.com",
        "unknown@example.com",
        "sipanonymous",
        "🙂",
        "Noname Nobody",
        "caller",
        "user-id",
        "unknownx",
        "private banking",
        '"Anonymous" <sip:+15551234567@example.com>',
    ],
)
def test_an_identity_that_may_be_somebodys_is_theirs(identity: str) -> None:
    """Decision 19: who is wrongly taken for nobody is not remembered."""
    assert not is_nobody(identity)


def test_the_tag_of_one_call_is_its_own_and_no_identity_reaches_it() -> None:
    """Decision 19: all anonymous callers sharing one memory would tell each of them of the others."""
    tag = call_tag("room-1", "anonymous")
    assert tag == call_tag("room-1", "anonymous")
    assert len({tag, call_tag("room-2", "anonymous"), call_tag("room-1", "sip_unknown")}) == 3
    assert call_tag("a b", "c") != call_tag("a", "b c")
    assert container_tag(tag, identity=True) != tag


def test_participants_without_a_name_are_told_apart() -> None:
    """Decision 19: two people in one room who are nobody are two people all the same."""
    scopes = Scopes()
    people = [
        Person("anonymous"),
        Person("sip_unknown"),
        Person(" ", sid="PA_1"),
        Person(" ", sid="PA_2"),
        Person("PA_2"),
        Person("number 0"),
        Person(""),
        Person(""),
    ]
    names = [scopes.person(person) for person in people]
    assert len(set(names)) == len(people)
    assert [scopes.person(person) for person in people] == names
    assert scopes.person(Person("anonymous", sid="PA_9")) == names[0], "one who comes back in the call"
