"""Container tags and document ids: always valid, never shared."""

from __future__ import annotations

import re
import unicodedata
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from livekit.rtc import RemoteParticipant
from livekit.rtc._proto import participant_pb2

from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.scope import (
    TAG_ATTRIBUTE,
    Participant,
    Scopes,
    container_tag,
    document_id,
    may_change_own_metadata,
    new_session_id,
    tag_from_participant,
)

VALID_TAG = re.compile(r"[A-Za-z0-9_:-]{1,100}")
VALID_DOCUMENT = re.compile(r"lk-[A-Za-z0-9_.-]{1,97}")

E_COMPOSED = unicodedata.normalize("NFC", "é")
E_DECOMPOSED = unicodedata.normalize("NFD", "é")

names = st.one_of(
    st.text(min_size=1, max_size=130),
    st.text(alphabet="ab._-:@+ 1é", min_size=1, max_size=8),
    st.from_regex(r"[a-z0-9_-]{1,60}-h[a-z2-7]{26}", fullmatch=True),
).filter(str.strip)


def caller(identity: Any = "ana", attributes: Any = None, **more: Any) -> Any:
    return SimpleNamespace(identity=identity, attributes={} if attributes is None else attributes, **more)


@pytest.mark.parametrize("tag", ["user_123", "a:b", "A-b_c", "x", "a" * 100])
def test_a_valid_tag_is_sent_as_it_is(tag: str) -> None:
    """Specification: letters, numbers, `_`, `-` and `:`, at most 100 characters. Case S1."""
    assert container_tag(tag) == tag


@pytest.mark.parametrize("value", ["a.b", "a@b", "+4915112345678", "a" * 101, "a\n", "Ünal", "☎"])
def test_any_other_value_becomes_a_valid_tag(value: str) -> None:
    """Specification: identities that are no valid tags are sanitised. Case S1."""
    assert container_tag(value) != value
    assert VALID_TAG.fullmatch(container_tag(value))


def test_a_sanitised_tag_is_the_same_in_every_release() -> None:
    """Specification: a stable tag. Another result would lose the memory of every such caller."""
    assert container_tag("+15550100") == "15550100-hmawnp656ifui4lmqejf4vq3c3m"
    assert document_id("Room 12 / Ana") == "lk-Room-12-Ana-hthhjeatdqrou6lwvfxcsibandx"


def test_a_sanitised_tag_can_be_read() -> None:
    """Design 2: a readable prefix and a hash of the original."""
    assert container_tag("ana.silva@example.org").startswith("ana-silva-example-org-h")


@pytest.mark.parametrize("value", ["", " ", "\t\n", "\u2003"])
def test_a_blank_tag_or_session_is_refused(value: str) -> None:
    """Case S1: an empty one is refused at bind."""
    with pytest.raises(ConfigurationError, match="container_tag is blank"):
        container_tag(value)
    with pytest.raises(ConfigurationError, match="session_id is blank"):
        document_id(value)


@pytest.mark.parametrize("value", [None, 5, b"ana", ["secret-caller"]])
def test_a_value_that_is_no_string_is_refused_without_quoting_it(value: Any) -> None:
    """Design 6: no tag in an exception."""
    with pytest.raises(ConfigurationError, match="takes a string, not") as caught:
        container_tag(value)
    assert "secret-caller" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="session_id takes a string, not"):
        document_id(value)


def test_identities_that_look_alike_have_tags_of_their_own() -> None:
    """Case S3."""
    identities = ["a.b", "a_b", "a@b", "a b", "A_b", "+1555", "1555", "sip_+1555", E_COMPOSED, E_DECOMPOSED]
    tags = [container_tag(identity, identity=True) for identity in identities]
    assert len(set(tags)) == len(identities)


def test_nobody_gets_anothers_tag_by_taking_it_as_identity() -> None:
    """Case S3: an identity equal to another's sanitised tag."""
    victim = container_tag("+1555", identity=True)
    attacker = container_tag(victim, identity=True)
    assert attacker != victim
    assert VALID_TAG.fullmatch(attacker)


def test_a_made_tag_from_the_backend_names_the_same_caller() -> None:
    """Specification: the same stable id as in the rest of the app, also where that was read from a call."""
    made = container_tag("+1555", identity=True)
    assert container_tag(made) == made
    assert container_tag("+1555") == made


@given(st.lists(names, min_size=2, max_size=8, unique=True))
@example(["\ud800", "\udfff"])
@example(["a" * 100, "a" * 101])
def test_distinct_values_have_distinct_tags_and_documents(values: list[str]) -> None:
    """Case S3, for names nobody thought of; with what is made from them among them."""
    values = list({*values, *(container_tag(value) for value in values)})
    assert len({container_tag(value, identity=True) for value in values}) == len(values)
    assert len({document_id(value) for value in values}) == len(values)


@given(names)
def test_what_is_sent_always_fits_the_rule(value: str) -> None:
    """Cases S1 and S2."""
    assert VALID_TAG.fullmatch(container_tag(value))
    assert VALID_DOCUMENT.fullmatch(document_id(value))


@pytest.mark.parametrize("session", ["room-1", "a.b_c", "x" * 97])
def test_a_safe_session_id_is_part_of_the_document_id(session: str) -> None:
    """Specification: one document under custom id `lk-<session_id>`."""
    assert document_id(session) == f"lk-{session}"


@pytest.mark.parametrize(
    "session", ["Room 12 / Ana", "r" * 120, "sip:+4915112345678@x", "☎", "a:b", "x" * 98]
)
def test_any_other_session_id_becomes_a_safe_one(session: str) -> None:
    """Case S2."""
    assert VALID_DOCUMENT.fullmatch(document_id(session))
    assert document_id(session) == document_id(session) != f"lk-{session}"


def test_a_made_session_id_is_new_and_needs_no_change() -> None:
    """Case S2: None."""
    first, second = new_session_id(), new_session_id()
    assert first != second
    assert document_id(first) == f"lk-{first}"


def test_the_first_caller_of_a_session_has_the_plain_document() -> None:
    """Specification: `lk-<session_id>`."""
    scope = Scopes().scope("ana", "room-1")
    assert (scope.container_tag, scope.session_id, scope.document_id) == ("ana", "room-1", "lk-room-1")


def test_a_second_caller_in_the_same_session_has_another_document() -> None:
    """Design 2; case S8: documents never mix across callers."""
    scopes = Scopes()
    ana, ben, eva = (scopes.scope(tag, "room-1") for tag in ("ana", "ben", "eva"))
    assert len({ana.document_id, ben.document_id, eva.document_id}) == 3
    assert VALID_DOCUMENT.fullmatch(ben.document_id)
    assert ben.document_id.startswith("lk-room-1-h")


def test_a_caller_who_comes_back_has_the_same_document_again() -> None:
    """Case L5: A, then B, then A again."""
    scopes = Scopes()
    first = scopes.scope("ana", "room-1")
    second = scopes.scope("ben", "room-1")
    assert scopes.scope("ana", "room-1") == first
    assert scopes.scope("ben", "room-1") == second


def test_the_document_of_a_second_caller_does_not_depend_on_the_process() -> None:
    """Case C10: a reconnect continues the document."""
    one, other = Scopes(), Scopes()
    one.scope("ana", "room-1")
    other.scope("eva", "room-1")
    assert one.scope("ben", "room-1") == other.scope("ben", "room-1")


def test_no_session_id_can_be_spelled_to_reach_the_document_of_a_second_caller() -> None:
    """Case S8: documents never mix across callers."""
    scopes = Scopes()
    scopes.scope("ana", "☎")
    assert scopes.scope("x", "☎").document_id not in {document_id("☎x"), document_id("☎ x")}


@given(st.lists(st.tuples(names, names), max_size=12))
def test_two_scopes_share_a_document_only_if_they_are_the_same(bound: list[tuple[str, str]]) -> None:
    """Case S8, for any order of binds."""
    scopes = Scopes()
    seen = {scopes.scope(container_tag(name), session) for name, session in bound}
    assert len({scope.document_id for scope in seen}) == len(seen)
    assert len(seen) == len({(name, session) for name, session in bound})


def test_the_attribute_names_the_caller_before_the_identity_does() -> None:
    """Specification: the attribute, or fall back to the participant identity."""
    assert tag_from_participant(caller("ana", {TAG_ATTRIBUTE: "user_1"})) == ("user_1", "attribute")
    assert tag_from_participant(caller("ana", {"other": "user_1"})) == ("ana", "identity")


@pytest.mark.parametrize(
    "attributes", [{TAG_ATTRIBUTE: ""}, {TAG_ATTRIBUTE: "  "}, {TAG_ATTRIBUTE: 7}, MagicMock(), 7]
)
def test_an_attribute_that_names_nobody_is_ignored(attributes: Any) -> None:
    """Case S11: console and simulated jobs give mocks."""
    assert tag_from_participant(caller("ana", attributes)) == ("ana", "identity")


def test_an_attribute_that_is_a_mock_is_ignored() -> None:
    """Case S11."""
    assert tag_from_participant(caller("ana", {TAG_ATTRIBUTE: MagicMock()})) == ("ana", "identity")


@pytest.mark.parametrize("identity", [None, MagicMock()])
def test_a_participant_whom_nothing_names_is_refused(identity: Any) -> None:
    """Case S1: never bound to nobody."""
    with pytest.raises(ConfigurationError, match="identity"):
        tag_from_participant(caller(identity))


def real_participant(*, may_update: bool | None) -> RemoteParticipant:
    permission = (
        None
        if may_update is None
        else participant_pb2.ParticipantPermission(
            can_subscribe=True,
            can_publish=True,
            can_publish_data=True,
            can_publish_sources=[],
            hidden=False,
            can_update_metadata=may_update,
            can_subscribe_metrics=False,
        )
    )
    info = participant_pb2.ParticipantInfo(
        sid="PA_1", identity="ana", attributes={TAG_ATTRIBUTE: "user_1"}, permission=permission
    )
    # The constructor wants a handle of the native library; only the information is read here.
    participant = object.__new__(RemoteParticipant)
    participant._info = info  # pyright: ignore[reportPrivateUsage]
    return participant


def test_a_participant_of_livekit_is_understood() -> None:
    """Specification, "Scope"; case S6."""
    participant: Participant = real_participant(may_update=True)
    assert tag_from_participant(participant) == ("ana", "identity")
    assert tag_from_participant(real_participant(may_update=False)) == ("user_1", "attribute")
    assert may_change_own_metadata(participant) is True
    assert may_change_own_metadata(real_participant(may_update=False)) is False
    assert may_change_own_metadata(real_participant(may_update=None)) is False


@pytest.mark.parametrize("participant", [caller(), MagicMock(), caller(permissions=None)])
def test_nobody_is_suspected_without_knowledge(participant: Any) -> None:
    """Case S6: the warning is for participants who may change their metadata; mocks tell nothing."""
    assert may_change_own_metadata(participant) is False
