"""Whose memory, and which call: container tags and document ids that are safe to send and never shared. Pure.

A value that fits the service's rule is sent as it is. Any other becomes `<readable part>-h<hash of the exact
value>`. A value that fits the rule and has this form is hashed as well, so that nobody reaches another
caller's memory by choosing the name that was made for them. Making a value safe is therefore not idempotent:
keep the original, not the result. (docs/decisions/0001-scope-and-ids.md)
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from .errors import ConfigurationError

__all__ = [
    "TAG_ATTRIBUTE",
    "Participant",
    "Scope",
    "Scopes",
    "container_tag",
    "document_id",
    "may_change_own_metadata",
    "new_session_id",
    "tag_from_participant",
]

TAG_ATTRIBUTE = "supermemory_container_tag"
"""The participant attribute that holds the container tag. Source: specification, "Scope"."""

_MAX_LENGTH = 100
"""Most characters of a container tag, and of a custom id. Source: specification, "Scope"; API, `customId`."""

_SLUG_LENGTH = 60
_HASH_LENGTH = 26
"""Base32 characters kept of a SHA-256: 130 bits."""

_VALID_TAG = re.compile(r"[A-Za-z0-9_:-]+")
_VALID_SESSION = re.compile(r"[A-Za-z0-9_.-]+")
_LOOKS_SANITISED = re.compile(rf"[A-Za-z0-9_-]{{1,{_SLUG_LENGTH}}}-h[a-z2-7]{{{_HASH_LENGTH}}}")
_DOCUMENT_PREFIX = "lk-"


@dataclass(frozen=True)
class Scope:
    """Whose memory, and which call. What is recalled or stored at one moment belongs to exactly one scope."""

    container_tag: str
    """The caller, as sent: 1 to 100 of `A-Za-z0-9_:-`."""
    session_id: str
    """The call, as it was given or made. Not sent."""
    document_id: str
    """Custom id of the call's document, as sent: `lk-…`, at most 100 of `A-Za-z0-9_.-`."""


class Participant(Protocol):
    """What is needed of a `livekit.rtc.Participant`."""

    @property
    def identity(self) -> str: ...

    @property
    def attributes(self) -> Mapping[str, str]: ...


def container_tag(value: str, *, identity: bool = False) -> str:
    """The container tag to send for `value`: itself if valid, else a stable tag made from it.

    Distinct values have distinct tags. A participant's identity (`identity=True`) may be of the caller's own
    choosing, so one that is spelled like a made tag does not reach the memory of that tag. A tag that comes from
    the developer or the backend may be a made one, and is sent as it is.

    Raises:
        ConfigurationError: `value` is blank or no string. The message does not quote it.
    """
    _require_text(value, "container_tag")
    return _safe(value, valid=_VALID_TAG, room=_MAX_LENGTH, may_be_made=not identity)


def document_id(session_id: str) -> str:
    """Custom id of a call's document: `lk-<session_id>`, made safe in the same way as a container tag.

    Raises:
        ConfigurationError: `session_id` is blank or no string; `new_session_id` makes one.
    """
    _require_text(session_id, "session_id")
    room = _MAX_LENGTH - len(_DOCUMENT_PREFIX)
    return _DOCUMENT_PREFIX + _safe(session_id, valid=_VALID_SESSION, room=room)


def new_session_id() -> str:
    """A session id for a call that was given none."""
    return uuid.uuid4().hex


class Scopes:
    """The scopes of one memory, so that two callers bound with one session id never share a document."""

    def __init__(self) -> None:
        self._tags: dict[str, str] = {}
        """Session id -> the container tag that was first bound with it and owns the plain document id."""

    def scope(self, tag: str, session_id: str) -> Scope:
        """The scope of a caller and a call; the same one whenever it is asked for.

        `tag` is a container tag as `container_tag` returns it.

        Raises:
            ConfigurationError: `session_id` is blank or no string.
        """
        document = document_id(session_id)
        if self._tags.setdefault(session_id, tag) != tag:
            # 0xff occurs in no UTF-8 text, so no session id of its own has the hash of this pair.
            pair = b"\xff".join([_bytes(session_id), _bytes(tag)])
            document = _DOCUMENT_PREFIX + _sanitised(session_id, pair)
        return Scope(container_tag=tag, session_id=session_id, document_id=document)


def tag_from_participant(participant: Participant) -> tuple[str, Literal["attribute", "identity"]]:
    """What names the caller, not sanitised yet, and where it was found.

    The attribute `supermemory_container_tag` wins over the identity unless it is blank.

    Raises:
        ConfigurationError: There is no such attribute and the identity is blank.
    """
    # Not what the type says in console and simulated jobs, which put mocks where a participant would be.
    attributes = cast(object, participant.attributes)
    if isinstance(attributes, Mapping):
        tag = cast("Mapping[str, object]", attributes).get(TAG_ATTRIBUTE)
        if isinstance(tag, str) and tag.strip():
            return tag, "attribute"
    identity = participant.identity
    _require_text(identity, "the participant's identity")
    return identity, "identity"


def may_change_own_metadata(participant: object) -> bool:
    """Whether the participant may set its own attributes, and so its container tag. False when unknown."""
    permissions = getattr(participant, "permissions", None)
    return getattr(permissions, "can_update_metadata", None) is True


def _require_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} takes a string, not {type(value).__name__}")
    if not value.strip():
        raise ConfigurationError(f"{name} is blank")


def _safe(value: str, *, valid: re.Pattern[str], room: int, may_be_made: bool = False) -> str:
    if (
        len(value) <= room
        and valid.fullmatch(value)
        and (may_be_made or not _LOOKS_SANITISED.fullmatch(value))
    ):
        return value
    return _sanitised(value, _bytes(value))


def _sanitised(readable: str, exact: bytes) -> str:
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", readable).strip("-")[:_SLUG_LENGTH] or "x"
    digest = base64.b32encode(hashlib.sha256(exact).digest()).decode().lower()
    return f"{slug}-h{digest[:_HASH_LENGTH]}"


def _bytes(text: str) -> bytes:
    # A name cut inside an emoji holds half a surrogate pair; it is a name all the same.
    return text.encode("utf-8", "surrogatepass")
