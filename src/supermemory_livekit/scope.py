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
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from .errors import ConfigurationError

__all__ = [
    "TAG_ATTRIBUTE",
    "Participant",
    "Scope",
    "Scopes",
    "call_tag",
    "container_tag",
    "document_id",
    "is_nobody",
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


def call_tag(session_id: str, person: str) -> str:
    """A container tag for one person in this call alone, who is nobody known. No identity reaches it.

    `person` tells them from the others of the call: see `Scopes.person`.

    Raises:
        ConfigurationError: `session_id` is blank or no string.
    """
    _require_text(session_id, "session_id")
    # 0xff occurs in no UTF-8 text, so no two pairs have the same bytes.
    return _sanitised("anonymous", b"\xff".join([b"anonymous call", _bytes(session_id), _bytes(person)]))


_SAYS_NOBODY = frozenset(
    [
        "anonymous",
        "blocked",
        "hidden",
        "none",
        "null",
        "private",
        "restricted",
        "unavailable",
        "undefined",
        "unidentified",
        "unknown",
        "withheld",
    ]
)
"""What carriers, SIP trunks (RFC 3323: `anonymous@anonymous.invalid`) and web clients put where nobody is named."""

_BESIDE_NOBODY = frozenset(
    ["asserted", "call", "caller", "id", "identity", "is", "name", "number", "party", "user"]
)
"""Words that stand beside those and name nobody either."""

_NOBODY = frozenset(
    [
        "",
        "idnotavailable",
        "noid",
        "nocallerid",
        "noname",
        "nonumber",
        "notavailable",
        "numbernotavailable",
        "outofarea",
    ]
)
"""The same in several words, written as one."""

_NOBODY_DIALLED = frozenset(["266696687", "86282452253", "7378742833", "2562533", "8656696", "7748283"])
"""ANONYMOUS, UNAVAILABLE, RESTRICTED, BLOCKED, UNKNOWN and PRIVATE on a phone's keys: what trunks send that demand a
number. With a `+` none of them is a number that anybody has."""

_LONGEST_LOCAL = 7
"""Digits of a number that might be somebody's when it is dialled without a country code."""

_ZEROS = 4
"""Zeros from which on they are no user's id, but a number that is not there. Behind `sip_` one is enough."""

_SCHEME = re.compile(r"^(?:sips?|tel|phone)[:_+-]+")
_URI_PARAMETERS = re.compile(r"[;?].*$")
_NAME_ADDRESS = re.compile(r"^.*<(.*)>[^>]*$", re.DOTALL)
"""`"Display name" <address>`."""
_BETWEEN = re.compile(r"[\s_.,:+()/'\"\[\]-]+")


def is_nobody(identity: str) -> bool:
    """Whether an identity says that it is not known who calls: blank, a withheld or an anonymous number."""
    text = _visible(unicodedata.normalize("NFKC", identity)).casefold()
    text = _NAME_ADDRESS.sub(r"\1", text).strip()
    user, _, host = _URI_PARAMETERS.sub("", text).partition("@")
    bare = _SCHEME.sub("", user)
    is_address = bare != user
    if host and not is_address and not host.endswith(".invalid"):  # an e-mail address: somebody reads it
        return False
    words = [word for word in _BETWEEN.split(bare) if word]
    name = "".join(words)
    if name.isdecimal():
        if not name.strip("0"):
            return is_address or len(name) >= _ZEROS
        return name in _NOBODY_DIALLED and (len(name) > _LONGEST_LOCAL or "+" in user)
    return name in _NOBODY or _names_nobody(words) or _names_nobody(_cut(name))


def _names_nobody(words: Sequence[str]) -> bool:
    return not _SAYS_NOBODY.isdisjoint(words) and set(words) <= _SAYS_NOBODY | _BESIDE_NOBODY


def _cut(name: str) -> list[str]:
    """`anonymouscaller` as two words."""
    for word in _SAYS_NOBODY:
        if name.startswith(word):
            return [word, name.removeprefix(word)] if name != word else [word]
    return []


def _visible(text: str) -> str:
    """Without what is not seen: zero-width marks and control characters."""
    return "".join(character for character in text if unicodedata.category(character) not in ("Cf", "Cc"))


def new_session_id() -> str:
    """A session id for a call that was given none."""
    return uuid.uuid4().hex


class Scopes:
    """The scopes of one memory, so that two callers bound with one session id never share a document."""

    def __init__(self) -> None:
        self._tags: dict[str, str] = {}
        """Session id -> the container tag that was first bound with it and owns the plain document id."""
        self._unnamed: list[Participant] = []
        """Participants with neither identity nor sid. Kept, or another one might take their place in memory."""

    def person(self, participant: Participant) -> str:
        """What tells this participant from every other one in the call; not what names the caller."""
        identity = cast(object, participant.identity)
        if isinstance(identity, str) and identity.strip():
            return f"identity {identity}"
        sid: object = getattr(participant, "sid", None)
        if isinstance(sid, str) and sid:
            return f"sid {sid}"
        for number, known in enumerate(self._unnamed):
            if known is participant:
                return f"number {number}"
        self._unnamed.append(participant)
        return f"number {len(self._unnamed) - 1}"

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

    The attribute `supermemory_container_tag` wins over the identity, unless it is blank or the participant may change
    it. The identity may be nobody's, and blank: see `is_nobody`.

    Raises:
        ConfigurationError: There is no such attribute and the identity is no string.
    """
    # Not what the type says in console and simulated jobs, which put mocks where a participant would be.
    attributes = cast(object, participant.attributes)
    if isinstance(attributes, Mapping) and not may_change_own_metadata(participant):
        tag = cast("Mapping[str, object]", attributes).get(TAG_ATTRIBUTE)
        if isinstance(tag, str) and tag.strip():
            return tag, "attribute"
    identity = cast(object, participant.identity)
    if not isinstance(identity, str):
        raise ConfigurationError(f"the participant's identity takes a string, not {type(identity).__name__}")
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
