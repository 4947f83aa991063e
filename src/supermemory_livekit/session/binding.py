"""Whose memory it is at this moment: who was bound, who else takes the line, what a participant's attributes change."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.params import InputParams
from supermemory_livekit.scope import (
    TAG_ATTRIBUTE,
    Participant,
    Scope,
    Scopes,
    call_tag,
    container_tag,
    is_nobody,
    may_change_own_metadata,
    new_session_id,
    tag_from_participant,
)
from supermemory_livekit.telemetry import logger

from .line import Line
from .wiring import Notices

__all__ = ["Binding", "SamePerson"]


SamePerson = Literal["yes", "perhaps", "no"]
"""Whether who is bound now is who was bound before. "yes": the attribute of the participant arrived. "perhaps": the
same participant is on the line, under another tag; several people may share a phone."""


@dataclass(frozen=True)
class _Bound:
    scope: Scope | None
    """None when the caller is nobody known."""
    by_identity: bool
    """The tag is a participant's identity, for want of the attribute."""
    tags: frozenset[str]
    """See `Binding.tags_of_person`."""


class Binding:
    """The bound caller of one memory.

    Args:
        session_id: Names the call until a bind does.
        changed: Called after each bind with the scope before and the one from now on, None for nobody known, and how
            far it is the same person.
    """

    def __init__(
        self,
        params: InputParams,
        scopes: Scopes,
        line: Line,
        notices: Notices,
        *,
        session_id: str | None,
        changed: Callable[[Scope | None, Scope | None, SamePerson], None],
    ) -> None:
        self._params = params
        self._scopes = scopes
        self._line = line
        self._notices = notices
        self._changed = changed
        self.scope: Scope | None = None
        self.nobody = False
        """The bound caller is nobody known."""
        self._session_id = session_id
        self._by_identity = False
        self._people: dict[str, _Bound] = {}
        """How participants were bound who were on the line before, by identity."""
        self._tags_of_person: set[str] = set()

    @property
    def tags_of_person(self) -> frozenset[str]:
        """Container tags under which the person on the line was bound so far in this call.

        A tag that follows an identity, or nobody's, names the same person better. One that follows another tag names
        another caller, though the phone is the same: what is done to all tags of a person must not hit two.
        """
        return frozenset(self._tags_of_person)

    @property
    def container_tag(self) -> str | None:
        return self.scope.container_tag if self.scope else None

    @property
    def session_id(self) -> str | None:
        return self.scope.session_id if self.scope else self._session_id

    def named_call(self) -> str:
        """The session id; one is made when there is none."""
        if self._session_id is None:
            self._session_id = new_session_id()
        return self._session_id

    def bind(
        self, *, tag: str | None, participant: Participant | None = None, session_id: str | None = None
    ) -> None:
        """See `SupermemoryLiveKit.bind`."""
        self._bind(tag, participant, session_id)

    def _bind(
        self,
        tag: str | None,
        participant: Participant | None,
        session_id: str | None,
        *,
        same: SamePerson | None = None,
    ) -> None:
        by_identity = nobody = False
        if tag is not None:
            asked = tag
        elif participant is not None:
            asked, source = tag_from_participant(participant)
            by_identity = source == "identity"
            nobody = by_identity and is_nobody(asked)
        else:
            raise ConfigurationError("bind takes a container_tag or a participant")
        call = self._session_id if session_id is None else session_id
        if call is None or (isinstance(call, str) and not call.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            call = new_session_id()
        if nobody and self._params.anonymous == "nothing":
            scope = None
        else:
            safe = (
                call_tag(call, self._scopes.person(participant))
                if nobody and participant is not None
                else container_tag(asked, identity=by_identity)
            )
            scope = self._scopes.scope(safe, call)
        if scope is not None and scope.container_tag != asked and not by_identity:
            self._notices.say_once(
                "tag",
                "The container tag is not valid (letters, digits, '_', '-', ':', at most 100 characters); "
                "a stable tag made from it is used",
            )
        self._session_id = call
        before = self._line.speaker or self._line.linked
        now = participant.identity if participant is not None else self._line.linked
        self._leave()
        self._line.speaker = participant.identity if participant is not None else None
        named_better = self._by_identity
        self._by_identity = by_identity
        if participant is not None and may_change_own_metadata(participant):
            self._notices.say_once(
                "metadata",
                "The caller may change their own metadata (canUpdateOwnMetadata), and so the attribute %s, which is "
                "therefore not used: do not grant it to callers, or pass container_tag from your backend",
                TAG_ATTRIBUTE,
            )
        same = same or ("perhaps" if now is not None and now == before else "no")
        self._use(scope, same, named_better=named_better)

    def rename_call(self, session_id: str) -> None:
        """Name the call anew; who is bound stays."""
        self._session_id = session_id
        if self.scope is not None:
            self._use(self._scopes.scope(self.scope.container_tag, session_id), "yes")

    def bound_caller_speaks(self) -> bool:
        """Whether whom the session listens to is the bound caller, or is from now on (`InputParams.follow`)."""
        if self.scope is None and not self.nobody:
            # Nobody is bound, so nobody is another one.
            return True
        another = self._line.another()
        if another is None:
            return True
        if not self._params.follow:
            return False
        self._follow(another)
        return True

    def scope_of(self, identity: str) -> Scope | None:
        """The scope of a participant who was on the line before; None when there is none."""
        bound = self._people.get(identity)
        return bound.scope if bound is not None else None

    def attributes_changed(self, changed: dict[str, str], participant: Participant) -> None:
        """The attribute arrived, or changed, after bind.

        The tag of a call that was bound by the attribute never changes. A call bound by identity, for want of the
        attribute, is bound again when it arrives, provided that only the backend can have set it.
        """
        if self.scope is None and not self.nobody:
            return
        if self._line.speaker != participant.identity:
            # They are bound by it when they come back.
            if (left := self._people.get(participant.identity)) is not None and left.by_identity:
                del self._people[participant.identity]
            return
        tag = changed.get(TAG_ATTRIBUTE)
        if not isinstance(tag, str) or not tag.strip() or container_tag(tag) == self.container_tag:
            return
        if self._by_identity and not may_change_own_metadata(participant):
            logger.info("The attribute %s arrived after bind; the call is bound by it now", TAG_ATTRIBUTE)
            self._bind(None, participant, self._session_id, same="yes")
        else:
            self._notices.say_once(
                "attribute", "The attribute %s changed after bind; the bound tag stays", TAG_ATTRIBUTE
            )

    def _use(self, scope: Scope | None, same: SamePerson, *, named_better: bool = False) -> None:
        before, self.scope = self.scope, scope
        if same == "no":
            known = self._people.get(self._line.speaker) if self._line.speaker is not None else None
            self._tags_of_person = set(known.tags) if known is not None else set()
        elif same == "perhaps" and not named_better and scope != before:
            self._tags_of_person = set()
        if scope is not None:
            self._tags_of_person.add(scope.container_tag)
        self.nobody = scope is None
        if scope is None:
            self._notices.say_once(
                "nobody",
                "It is not known who the caller is (a withheld number or the like): nothing is stored or recalled",
                level=logging.INFO,
            )
        self._changed(before, scope, same)

    def _follow(self, participant: Participant) -> None:
        if (known := self._people.get(participant.identity)) is None:
            self.bind(tag=None, participant=participant)
            return
        self._leave()
        self._line.speaker = participant.identity
        self._by_identity = known.by_identity
        self._use(known.scope, "no")

    def _leave(self) -> None:
        """Note how who was on the line so far is bound."""
        if self._line.speaker is not None and (self.scope is not None or self.nobody):
            self._people[self._line.speaker] = _Bound(self.scope, self._by_identity, self.tags_of_person)
