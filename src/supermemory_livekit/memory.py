"""SupermemoryLiveKit: the memory of one call. A thin composition; each part does its work in a module of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from livekit.agents import AgentSession, get_job_context, llm
from typing_extensions import Self

from .background import Background
from .capture.capture import Capture
from .capture.consent import Consent
from .capture.redaction import Redaction
from .erasure.erasure import ERASE_TIMEOUT, Erasure
from .erasure.marks import ErasureMarks
from .erasure.of_call import CallErasure
from .erasure.write_gate import WriteGate
from .errors import ConfigurationError
from .events import Events, EventSource
from .observability.observer import Observer
from .observability.spans import Operation
from .params import InputParams
from .recall.recall import Recall, Recollection
from .recall.render import blank_calls, insert, render_block, strip, strip_fenced
from .scope import (
    Participant,
    Scope,
    Scopes,
)
from .sdk.sharing import SharedStore
from .sdk.store import SDKStore, make_client
from .session import every_agent, realtime
from .session.binding import Binding, SamePerson
from .session.conversation import Conversation, guarded
from .session.ending import Ending
from .session.line import Line
from .session.record_tools import record_tools
from .session.tools import MemoryTools
from .session.wiring import Notices, Wiring
from .store import Hit, MemoryStore
from .telemetry import Stats, logger
from .transcript import fold, spoken_in

__all__ = ["SupermemoryLiveKit"]


class SupermemoryLiveKit(EventSource):
    """The memory of one caller during one call.

    Create one per call, inside the job. `bind` says whose memory it is, `attach` stores the conversation, and
    `SupermemoryAgent` (or `enrich` in an agent of your own) recalls before each reply.

    The constructor does no I/O. After set-up nothing here raises into the call: a service that fails costs a reply
    its memory, never the reply.

    Args:
        api_key: Supermemory API key. Falls back to `SUPERMEMORY_API_KEY`.
        base_url: Where Supermemory answers, for a self-hosted API; `"local"` is the embedded service in this process
            (extra `[local]`). Falls back to `SUPERMEMORY_BASE_URL`, then to the hosted API.
        container_tag: Whose memory: a stable id of the caller, the one used in the rest of the app. Can be given
            later with `bind` or `attach`.
        session_id: Names the call; usually the room's name. The call's document has the custom id `lk-<session_id>`.
        params: What to recall and how to capture.
        client: An `AsyncSupermemory` of your own, of 3.x or 5.x, or any object with the same async methods: `add`,
            `profile`, `search.memories` (5.x: `search`) and `memories.forget`. It is not closed by `aclose()`.

    Raises:
        ConfigurationError: A parameter is wrong, or there is no key, no client and no base_url.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        container_tag: str | None = None,
        session_id: str | None = None,
        params: InputParams | None = None,
        client: Any | None = None,
    ) -> None:
        store: MemoryStore
        if client is not None:
            store = SDKStore(client, owns_client=False)
        else:
            store = SDKStore(make_client(api_key=api_key, base_url=base_url))
        self._compose(
            SharedStore(store), Scopes(), params=params, container_tag=container_tag, session_id=session_id
        )

    @classmethod
    def from_store(
        cls,
        store: MemoryStore,
        *,
        container_tag: str | None = None,
        session_id: str | None = None,
        params: InputParams | None = None,
    ) -> Self:
        """A memory over a `MemoryStore` of your own, for example `testing.ScriptedStore`."""
        memory = cls.__new__(cls)
        memory._compose(
            SharedStore(store), Scopes(), params=params, container_tag=container_tag, session_id=session_id
        )
        return memory

    def _compose(
        self,
        shared: SharedStore,
        scopes: Scopes,
        *,
        params: InputParams | None,
        container_tag: str | None,
        session_id: str | None,
    ) -> None:
        if params is not None and not isinstance(params, InputParams):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"params takes an InputParams, not {type(params).__name__}")
        self._params = params or InputParams()
        spool_dir = self._params.spool_dir
        self._shared = shared
        store = gate = WriteGate(
            shared.store,
            marks=ErasureMarks.of_machine(spool_dir),
            erased=lambda tag: self._erasure.noticed(tag),
        )
        self._stats = Stats()
        self._events = Events()
        observer = Observer(self._stats, self._events)
        self._recall = Recall(store, self._params, self._stats, observer)
        self._capture = Capture(store, self._params, self._stats, observer=observer, clean=strip_fenced)
        self._consent = Consent(asked=self._params.capture == "consent")
        self._redaction = Redaction(self._params.redact, self._stats)
        self._background = Background()
        self._line = Line()
        self._notices = Notices()
        self._wiring = Wiring(self._line, self._notices)
        self._every_agent_of: list[AgentSession[Any]] = []
        """Sessions attached with `recall=True`."""
        self._scopes = scopes
        self._binding = Binding(
            self._params, scopes, self._line, self._notices, session_id=session_id, changed=self._rebound
        )
        self._conversation = Conversation(
            binding=self._binding,
            line=self._line,
            consent=self._consent,
            redaction=self._redaction,
            capture=self._capture,
            recall=self._recall,
            wiring=self._wiring,
            notices=self._notices,
            background=self._background,
            stats=self._stats,
            goes_on=lambda: self._ending.call_goes_on(),
            agent_changed=self._on_agent,
            committed=self._refresh_server_side_realtime,
        )
        self._ending = Ending(
            intake=self._conversation.intake,
            capture=self._capture,
            recall=self._recall,
            store=shared.lease(),
            background=self._background,
            observer=observer,
            erasing=lambda timeout: self._erasure.finish(timeout),
        )
        self._tools = MemoryTools(
            store,
            tag=lambda: self.container_tag,
            params=self._params,
            changed=self._recall.changed,
            remembered=self._recall.remembered,
            forgot=self._recall.forgot,
            refusal=self._refusal,
            redact=self._redaction.redacted if self._redaction.wanted else None,
            forgetting=self._conversation.forgetting,
            kept_out=self._conversation.forgot,
            observer=observer,
        )
        offered = self._params.off_the_record_tools
        self._record_tools = record_tools(self._conversation.caller_goes) if offered else []
        self._erasure = CallErasure(
            gate=gate,
            capture=self._capture,
            recall=self._recall,
            tools=self._tools,
            background=self._background,
            bound=lambda: self.container_tag,
            spool_dir=spool_dir,
            hide=lambda: self._show_realtime(None),
        )
        self._others: dict[str, SupermemoryLiveKit] = {}
        """Memories of other participants of the room, by what tells them apart."""
        if container_tag is not None:
            self.bind(container_tag=container_tag, session_id=session_id)

    # -- whose memory --------------------------------------------------------------------------------------------

    @property
    def container_tag(self) -> str | None:
        """The container tag of the bound caller, as it is sent; None before any bind."""
        return self._binding.container_tag

    @property
    def session_id(self) -> str | None:
        """The session id of the call, as it was given or made; None before any bind."""
        return self._binding.session_id

    @property
    def stats(self) -> Stats:
        """Counters of this call. They are live: read them whenever you like."""
        return self._stats

    def bind(
        self,
        *,
        container_tag: str | None = None,
        participant: Participant | None = None,
        session_id: str | None = None,
    ) -> None:
        """Say who is on the line.

        An explicit `container_tag` wins; otherwise the participant's attribute `supermemory_container_tag`, or its
        identity. What is no valid container tag is turned into a stable one (`scope.container_tag`). An attribute that
        the participant may change is refused, with a warning. An identity that is nobody's, such as that of a withheld
        number, binds nobody: nothing is stored or recalled (see `InputParams.anonymous`).

        Binding another caller later is possible: turns captured before stay with the caller who said them, and
        nothing recalled for one is shown to the other.

        Raises:
            ConfigurationError: Neither a tag nor a participant was given, or the tag is blank.
        """
        self._binding.bind(tag=container_tag, participant=participant, session_id=session_id)
        self._watch_job()

    def _rebound(self, before: Scope | None, scope: Scope | None, same: SamePerson) -> None:
        self._erasure.rebound(self._binding.tags_of_person)
        self._conversation.rebound(before, scope, same)
        self._recall_if_allowed()
        if before is not None and (scope is None or before.container_tag != scope.container_tag):
            self._hide_soon()

    def _recall_if_allowed(self) -> None:
        scope = self._binding.scope
        if scope is None or not self._consent.given or self._erasure.covers(scope.container_tag):
            self._recall.unbind()
        else:
            self._recall.bind(scope.container_tag, scope.document_id)

    def _hide_soon(self) -> None:
        """Take what a realtime model was shown away from it. Other models are shown it in copies."""
        agent, session = self._line.agent()
        if agent is not None and realtime.is_realtime(agent, session):
            self._background.start(self._show_realtime(None), "Taking memory away from the realtime model")

    def for_participant(self, participant: Participant) -> SupermemoryLiveKit:
        """The memory of another person in the same room, bound to that participant; the same one at every call.

        It has the parameters, the session id and the connection of this one, and a document of its own. Attach it to
        the session that listens to the participant (`RoomOptions(participant_identity=…)`): a session listens to one.
        """
        person = self._scopes.person(participant)
        if person not in self._others:
            other = type(self).__new__(type(self))
            self._watch_job()
            other._compose(
                self._shared,
                self._scopes,
                params=self._params,
                container_tag=None,
                session_id=self._binding.named_call(),
            )
            other.bind(participant=participant)
            self._others[person] = other
        return self._others[person]

    # -- what may be kept ----------------------------------------------------------------------------------------

    def consent(self, agreed: bool) -> None:
        """Say whether the bound caller agrees to being remembered. With `capture="consent"` nothing is stored or
        recalled before they do.

        It holds for this call, and for this caller: another one who is bound is asked anew. What was said before is
        not stored. With False nothing is stored or recalled any more and what is buffered is discarded; `erase` takes
        away what is stored.
        """
        self._conversation.consent(agreed)
        if not agreed:
            self._hide_soon()
        self._recall_if_allowed()

    def off_the_record(self) -> AbstractContextManager[None]:
        """What the caller or the agent says in a `with` block of this is neither stored nor searched for.

        That holds for a turn of which a part was spoken within, and for the agent's answer to it. The profile that is
        known is still shown to the model; the tools neither search nor remember.
        """
        return self._conversation.off_the_record()

    def discard(self) -> int:
        """Throw away what is buffered, also what lies in the spool. Returns how many turns that were.

        A request under way is given up; the service may have taken what it carried.
        """
        return self._conversation.discard()

    def _refusal(self, operation: Operation) -> str | None:
        """Why a tool may not be used now."""
        if not self._binding.bound_caller_speaks():
            return "another person is on the line than the one whose memory this is"
        if self._binding.nobody:
            return "it is not known who the caller is"
        if (tag := self.container_tag) is not None and self._erasure.covers(tag):
            return "the caller's memory was erased, and nothing of this call is stored or looked up any more"
        if not self._consent.given:
            return "the caller has not agreed to being remembered"
        if self._consent.off and operation != "delete_memory":
            return "this is off the record"
        return None

    # -- recall --------------------------------------------------------------------------------------------------

    async def preload(self, chat_ctx: llm.ChatContext) -> bool:
        """Put the caller's profile into `chat_ctx`, so that the first words of the agent can use it.

        Of the caller's last call, the end comes with it as long as the service has made no memories of that call: who
        rings back at once is remembered.

        Waits at most `recall_timeout` seconds. Returns True when something was added; False for a caller nobody
        knows yet, without a bound caller, in mode "query", and when the service does not answer in time.
        """
        strip(chat_ctx)
        if not self._ready("preload"):
            return False
        try:
            tag = self.container_tag
            block = self._block(await self._recall.preload(), "")
            if block is None or tag != self.container_tag:
                return False
            insert(chat_ctx, block)
        except Exception as error:  # noqa: BLE001 - no memory fault may end the call
            logger.error("preload failed with %s; the call goes on without it", type(error).__name__)
            return False
        return True

    async def enrich(self, chat_ctx: llm.ChatContext) -> None:
        """Recall for the last user message and put what was found right before it. For use in `llm_node`.

        Works on the copy of the context that LiveKit hands to `llm_node`: memory inserted earlier is taken out first,
        one new system message is put in, and no other item is touched, but for calls of the memory tools that were
        answered for another caller: their words and answers are blanked. Waits at most `recall_timeout` seconds.
        """
        strip(chat_ctx)
        try:
            self._hide_from_others(chat_ctx)
            message = _last_user_message(chat_ctx)
            self._wiring.recall_asked(message.id if message is not None else None)
            if message is not None:
                self._conversation.answers(message.id)
            if not self._ready("recall"):
                return
            block = await self._recalled_block(message, chat_ctx)
            # An attempt may have enriched the same context while this one waited, or the caller have changed.
            strip(chat_ctx)
            self._hide_from_others(chat_ctx)
            if block is not None:
                insert(chat_ctx, block)
        except Exception as error:  # noqa: BLE001 - an exception here would cost the caller the reply
            logger.error("Recall failed with %s; the reply goes on without it", type(error).__name__)

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        """Recall for a realtime model, from the agent's hook of the same name.

        Realtime models run no `llm_node` and do not see changes of `turn_ctx`, so what was found is pushed to the
        model's session: as one item of its chat context that is replaced at each turn, or as an addition to its
        instructions, whichever it accepts. Needs `attach(session)`.

        With any other model use `enrich` in `llm_node`. Called here all the same, it enriches `turn_ctx`, which costs
        the preemptive generation of each turn.
        """
        try:
            self._wiring.recall_asked(new_message.id)
            self._conversation.answers(new_message.id)
            if not self._ready("recall"):
                return
            block = await self._recalled_block(new_message, turn_ctx)
            agent, session = self._line.agent()
            if agent is not None and realtime.is_realtime(agent, session):
                await self._show_realtime(block)
                return
            self._notices.say_once(
                "hook",
                "on_user_turn_completed is for realtime models on an attached session; with other models call "
                "enrich in llm_node, which keeps preemptive generation",
            )
            strip(turn_ctx)
            self._hide_from_others(turn_ctx)
            if block is not None:
                insert(turn_ctx, block)
        except Exception as error:  # noqa: BLE001 - an exception in this hook would drop the caller's turn
            logger.error("Recall failed with %s; the reply goes on without it", type(error).__name__)

    async def _recalled_block(self, message: llm.ChatMessage | None, context: llm.ChatContext) -> str | None:
        tag = self.container_tag
        text = (message.text_content or "") if message is not None else ""
        asked_at = asyncio.get_running_loop().time()
        if context.items and context.items[-1].type == "function_call_output":
            self._conversation.tool_answered()
        query = await self._query(message.id, text) if message is not None else None
        if not self._still_for(tag):
            return None
        if message is None or query is None:
            query = ""
            found = await self._recall.for_greeting()
        else:
            found = await self._recall.for_message(
                message.id, query, asked_at=asked_at, shown=lambda hits: _not_in(context, hits)
            )
        # The caller may have changed while we waited; what was found is then somebody else's.
        if not self._still_for(tag):
            return None
        return self._block(replace(found, hits=_not_in(context, found.hits)), query)

    def _hide_from_others(self, chat_ctx: llm.ChatContext) -> None:
        """Blank what the tools were asked and found for somebody else than who is on the line now."""
        theirs = self._binding.tags_of_person if self._binding.bound_caller_speaks() else frozenset[str]()
        blank_calls(chat_ctx, self._tools.calls_for_others(theirs))

    def _still_for(self, tag: str | None) -> bool:
        """Whether what was asked for under this tag may still be asked for and shown."""
        return self._binding.bound_caller_speaks() and tag == self.container_tag and self._consent.given

    async def _query(self, message_id: str, text: str) -> str | None:
        """What may be looked up for these words; None for nothing. Waits at most `recall_timeout` seconds."""
        if not self._conversation.may_search_for(message_id):
            return None
        if not self._redaction.wanted:
            return text
        try:
            # The same text as is stored, so that the redactor is asked once and sees it whole.
            words = fold(strip_fenced(text))
            redacted = await asyncio.wait_for(self._redaction.redacted(words), self._params.recall_timeout)
        except asyncio.TimeoutError:
            return None
        # It may have gone off the record meanwhile.
        return redacted if self._conversation.may_search_for(message_id) else None

    def _block(self, found: Recollection, query: str) -> str | None:
        return render_block(
            found.profile,
            found.hits,
            mode=self._params.mode,
            limit=self._params.search_limit,
            now=datetime.now(timezone.utc),
            query=query,
            tail=found.tail,
        )

    async def _show_realtime(self, block: str | None) -> None:
        agent, session = self._line.agent()
        if agent is None or not realtime.is_realtime(agent, session):
            return
        if not await realtime.push(agent, session, block) and block is not None:
            self._notices.say_once(
                "realtime",
                "This realtime model accepts no change of its context or instructions during a call: the caller's "
                "memory comes from preload and the memory tools alone",
            )

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools(self) -> list[llm.Tool | llm.Toolset]:
        """The tools `search_memories`, `remember` and `forget`, scoped to the bound caller; with
        `off_the_record_tools` also `go_off_the_record` and `go_on_the_record`.

        The same objects at every call, so that they can be given to a session and to its agents.
        """
        self._wiring.recall_asked(None)
        return [*self._tools.function_tools(), *self._record_tools]

    async def search(self, query: str) -> str:
        """What the tool `search_memories` answers the model for this query."""
        return await self._tools.search(query)

    async def remember(self, memory_text: str) -> str:
        """Store one fact of its own. Returns what the model is told: saved, or plainly NOT saved."""
        return await self._tools.remember(memory_text)

    async def forget(self, memory_id: str | None = None, memory_text: str | None = None) -> str:
        """Forget one fact by its id or its exact text. Returns what the model is told."""
        return await self._tools.forget(memory_id=memory_id, memory_text=memory_text)

    async def erase(self, *, timeout: float = ERASE_TIMEOUT) -> Erasure:
        """Erase the bound caller: calls, remembered facts and derived memories, and prove it by reading back.

        Also what is on its way there: in this call's buffer, in the spool, and in this machine's embedding cache.
        It covers the tags under which this person was bound before in this call, as by the identity until the attribute
        arrived. From then on nothing of this call is stored or recalled for this caller, under none of their tags,
        whatever is still said; `stats` counts it as dropped. Their next call begins anew, also when it begins while
        this reads back.

        Takes a few seconds when all is well, and `timeout` at most, besides up to 11 s for a write that is under way,
        and 15 s to look again when another process held turns of the caller.
        A service that fails does not raise: see `Erasure.clean`.

        Raises:
            ConfigurationError: No caller is bound.
        """
        if self.container_tag is None:
            raise ConfigurationError("erase needs a bound caller: call bind first")
        return await self._erasure.erase(self._binding.tags_of_person, timeout)

    # -- capture -------------------------------------------------------------------------------------------------

    def attach(
        self,
        session: AgentSession[Any],
        *,
        container_tag: str | None = None,
        session_id: str | None = None,
        recall: bool = False,
    ) -> None:
        """Store the conversation of this session, and follow it for recall. Call it before `session.start`.

        What was said is written after each reply of the agent, and what is left when the session closes or the job
        shuts down. Attaching the same session again changes nothing but the scope.

        With `recall=True` every agent of the session recalls before its replies and has the memory tools: plain
        `Agent`s, handoff targets and `AgentTask`s too. An agent that recalls already is left as it is.
        """
        if container_tag is not None:
            self.bind(container_tag=container_tag, session_id=session_id)
        elif session_id is not None:
            self._binding.rename_call(session_id)
        self._watch_job()
        if self._line.add(session):
            self._conversation.listen(session)
            self._ending.watch_session(session)
        if recall and session not in self._every_agent_of:
            self._every_agent_of.append(session)
            every_agent.add_tools(session, self.tools())

    def _on_agent(self) -> None:
        agent, session = self._line.agent()
        if agent is not None and session is not None and session in self._every_agent_of:
            every_agent.wrap(agent, session, enrich=self.enrich, hook=self.on_user_turn_completed)

    def _refresh_server_side_realtime(self, message: llm.ChatMessage) -> None:
        """A realtime model that takes turns by itself runs no hook; the next reply gets what bears on these words."""
        agent, session = self._line.agent()
        if self._wiring.was_recalled(message.id) or agent is None or not realtime.is_realtime(agent, session):
            return
        if self._wiring.wants_recall and self._binding.scope is not None:
            self._background.start(self._recall_for_realtime(message), "Recall for the realtime model")

    async def _recall_for_realtime(self, message: llm.ChatMessage) -> None:
        agent, _ = self._line.agent()
        context = agent.chat_ctx if agent is not None else llm.ChatContext.empty()
        await self._show_realtime(await self._recalled_block(message, context))

    async def aclose(self) -> None:
        """Store what is left and close. Takes at most 8 seconds together with `close` and shutdown; safe twice.

        The memories of other people in the room (`for_participant`) end with it.
        """
        await asyncio.gather(self._ending.aclose(), *(other.aclose() for other in self._others.values()))

    # -- the room ------------------------------------------------------------------------------------------------

    def _watch_job(self) -> None:
        job = get_job_context(required=False)
        if job is not None and self._ending.watch_job(job):
            job.room.on("participant_attributes_changed", guarded(self._binding.attributes_changed))

    # -- small things --------------------------------------------------------------------------------------------

    def _ready(self, what: str) -> bool:
        if not self._binding.bound_caller_speaks():
            self._hide_soon()
            return False
        if self._binding.scope is None:
            if not self._binding.nobody:
                self._notices.say_once(
                    "unbound", "No caller is bound: %s does nothing until bind is called", what
                )
            return False
        return self._consent.given and not self._erasure.covers(self._binding.scope.container_tag)


def _last_user_message(chat_ctx: llm.ChatContext) -> llm.ChatMessage | None:
    for item in reversed(chat_ctx.items):
        if isinstance(item, llm.ChatMessage) and item.role == "user":
            return item
    return None


def _not_in(context: llm.ChatContext, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Without raw text of this very call that the model has before it anyway."""
    said = {fold(item.text_content or "") for item in context.items if isinstance(item, llm.ChatMessage)}
    return tuple(
        hit
        for hit in hits
        if hit.memory_id is not None or not (lines := spoken_in(hit.text)) or not said.issuperset(lines)
    )
