"""Who is on the line: the attached sessions, the agent at work, and the participant the session listens to."""

from __future__ import annotations

from typing import Any

from livekit.agents import Agent, AgentSession

from supermemory_livekit.scope import Participant

__all__ = ["Line", "agent_of"]


class Line:
    """The sessions of one memory, and whether the bound caller is the one who speaks there."""

    def __init__(self) -> None:
        self.sessions: list[AgentSession[Any]] = []
        self.speaker: str | None = None
        """Identity of the participant whose memory it is. None until it is known: a memory bound by tag belongs to
        the participant who is linked first."""
        self._said_by: set[str] = set()
        """Identities of the participants of whom words of the turn under way were reported."""
        self._begun_by: str | None = None
        """Who was heard to begin to speak last. Without words it may have been a cough."""

    def add(self, session: AgentSession[Any]) -> bool:
        """False when the session was attached before."""
        if any(session is known for known in self.sessions):
            return False
        self.sessions.append(session)
        return True

    def another(self) -> Participant | None:
        """The participant whom the session listens to, if that is another one than the bound caller.

        LiveKit has no event for a change of the linked participant, so this is asked at every turn.
        """
        participant = self._participant()
        if participant is None:
            return None
        if self.speaker is None:
            self.speaker = participant.identity
        return participant if participant.identity != self.speaker else None

    @property
    def linked(self) -> str | None:
        """Identity of the participant whom the sessions listen to; None without one."""
        participant = self._participant()
        return participant.identity if participant is not None else None

    @property
    def heard(self) -> set[str]:
        """Identities of the participants who were heard in the turn under way."""
        return self._said_by | ({self._begun_by} if self._begun_by is not None else set())

    def begins(self) -> None:
        """Somebody begins to speak at this moment."""
        self._begun_by = self.linked

    def words(self) -> None:
        """Words of the turn under way are reported at this moment."""
        if (linked := self.linked) is not None:
            self._said_by.add(linked)

    def turn_over(self) -> None:
        """The caller's turn was committed."""
        self._said_by.clear()
        self._begun_by = None

    def agent(self) -> tuple[Agent | None, AgentSession[Any] | None]:
        """The agent at work in the session attached last that runs."""
        for session in reversed(self.sessions):
            if (agent := agent_of(session)) is not None:
                return agent, session
        return None, None

    def _participant(self) -> Participant | None:
        """Whom the sessions listen to."""
        return next((linked for session in self.sessions if (linked := _linked(session)) is not None), None)


def agent_of(session: AgentSession[Any]) -> Agent | None:
    """The agent at work in this session; None when the session does not run."""
    try:
        return session.current_agent
    except RuntimeError:  # raised by a session that is not running
        return None


def _linked(session: AgentSession[Any]) -> Participant | None:
    try:
        participant = session.room_io.linked_participant
    except RuntimeError:  # raised by a session without a room
        return None
    # Console and simulated jobs put mocks where a participant would be.
    identity: object = participant.identity if participant is not None else None
    return participant if isinstance(identity, str) else None
