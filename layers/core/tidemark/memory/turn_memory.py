"""What a chat turn does with durable memory: recall before it, store what was asked, mark what may be learned. Best effort: a turn is
answered without memory where memory fails."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tidemark.clock import now
from tidemark.conversations.access import Setting
from tidemark.conversations.assembly import RecalledBlock, recalled_block
from tidemark.conversations.blocks import MemoryLine
from tidemark.conversations.history import Base
from tidemark.conversations.model import ConversationState, Draft
from tidemark.conversations.requests import TurnBody
from tidemark.errors import UnavailableError
from tidemark.memory import explicit
from tidemark.memory.explicit import ExplicitRequest
from tidemark.memory.extraction import Extraction
from tidemark.memory.learning import USER
from tidemark.memory.model import LEAST_TRUSTED_FIRST, SourceMessage, Trust
from tidemark.memory.questions import Said, with_recent
from tidemark.memory.records import Provenance
from tidemark.memory.remembering import Remembering
from tidemark.memory.scope import Scope, may_learn, may_store_explicitly
from tidemark.memory.search import Hit, MemorySearch, MessageFound, Question
from tidemark.memory.store import MemoryStore
from tidemark.observability import logger, measure, where
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import MemorySettings

PROFILE_LINES = 5
MESSAGE_CHARACTERS = 600  # of a recalled message; the rest is one recall away
REFUSED = {"en": "I do not keep passwords, keys or other credentials.", "zh": "我不会保存密码、密钥等凭证。"}
PROFILE_PREDICATES = ("name", "home", "employer", "job", "age", "civil status")


@dataclass(frozen=True, slots=True)
class Explicit:
    request: ExplicitRequest
    scope: Scope
    settings: MemorySettings


class TurnMemory:
    def __init__(self, store: MemoryStore, search: MemorySearch, remembering: Remembering, extraction: Extraction) -> None:
        self._store, self._search, self._remembering, self._extraction = store, search, remembering, extraction

    # before the turn
    def explicit(self, scope: Scope | None, settings: MemorySettings, body: TurnBody) -> Explicit | None:
        """The request to remember that a turn is, where the caller has a scope that stores."""
        if scope is None or body.memory == "off" or body.content is None or body.tool_results:
            return None
        if not may_store_explicitly(scope, settings.retention):
            return None
        request = explicit.parse(body.content)
        return Explicit(request, scope, settings) if request else None

    def recall(
        self, tenant_id: str, setting: Setting, state: ConversationState, base: Base, content: str, recent: Iterable[Said]
    ) -> RecalledBlock:
        """The block of what is recalled for a turn, within its token budget; empty where nothing is relevant or memory fails. `recent` is
        what was said before, newest first; it is read only where the turn's words lean on it."""
        scope = setting.scope
        if scope is None or setting.memory.context_tokens == 0:
            return RecalledBlock()
        try:
            words = with_recent(content, recent)
            question = self._search.question(words, lambda: self._search.last_sitting(tenant_id, scope.key, besides=state.id), said=content)
            lines = self._lines(tenant_id, scope, setting, state, base, question)
        except Exception as exc:  # noqa: BLE001 - recall never fails a turn
            logger.error("recall failed", error=type(exc).__name__, where=where(exc))
            measure("RecallFailed")
            return RecalledBlock()
        return recalled_block(lines, setting.memory.context_tokens, setting.model.factor)

    def _lines(
        self, tenant_id: str, scope: Scope, setting: Setting, state: ConversationState, base: Base, question: Question
    ) -> list[tuple[str, MemoryLine]]:
        profile = self._profile(tenant_id, scope) if scope.kind == "subject" else []
        hits, found = self._found(tenant_id, scope, setting, state, question)
        hits = self._search.unsaid(state, base.path, hits)
        self._search.count_access(tenant_id, hits)
        known = {source for source, _ in profile}
        facts = [_fact_line(hit) for hit in hits if hit.entity.id not in known]
        quoted = {source.message_id for hit in hits for source in hit.entity.provenance}
        said = [_message_line(one) for one in found if one.message.id not in quoted]
        return [*profile, *facts, *said]

    def _found(
        self, tenant_id: str, scope: Scope, setting: Setting, state: ConversationState, question: Question
    ) -> tuple[list[Hit], list[MessageFound]]:
        """Facts and messages that answer the turn's words; none while the index is away."""
        limit = setting.agent.memory_config.max_memories_per_retrieval
        elsewhere = replace(question, excluded_conversations=frozenset({state.id}))
        try:
            hits = self._search.memories(tenant_id, [scope], question, setting.memory, limit=limit)
            if scope.kind == "knowledge_base":
                return hits, []  # messages stay their subject's, also on a base that all share
            return hits, self._search.messages(tenant_id, [(scope.key, scope.key)], elsewhere, limit=limit)
        except UnavailableError:
            return [], []

    def _profile(self, tenant_id: str, scope: Scope) -> list[tuple[str, MemoryLine]]:
        """The few facts about the user that are always at hand."""
        at = now()
        found: list[tuple[str, MemoryLine]] = []
        for entity in self._store.exclusives(tenant_id, scope, USER, PROFILE_PREDICATES):
            if entity.alive(at) and entity.holds(at):
                text = f"{entity.name}. {entity.description}" if entity.description else entity.name
                line = MemoryLine(
                    text=text,
                    kind="profile",
                    date=entity.valid_from,
                    trust=_trust(entity.provenance),
                    session=_session(entity.provenance),
                )
                found.append((entity.id, line))
        return found[:PROFILE_LINES]

    # what a turn stores
    def learnable(self, setting: Setting, *, wanted: bool) -> str | None:
        """The scope that may learn from this turn; fixed when the turn is stored."""
        config = setting.agent.memory_config
        if setting.scope is None or not may_learn(setting.scope, setting.memory.retention, auto_extract=config.auto_extract, wanted=wanted):
            return None
        return setting.scope.key

    def pending(self, setting: Setting, state: ConversationState, drafts: Sequence[Draft]) -> dict[str, object]:
        """How new messages change what waits for extraction."""
        fresh = sum(draft.role == "user" and draft.scope is not None for draft in drafts)
        if not fresh:
            return {}
        waiting = state.pending_turns + fresh
        extraction = setting.memory.extraction
        due = now() if waiting >= extraction.max_pending_turns else now() + timedelta(seconds=extraction.cooldown_seconds)
        return {"pending_turns": waiting, "extract_at": due if extraction.async_enabled else None}

    def remember(self, caller: Caller, setting: Setting, state: ConversationState, wanted: Explicit, message_id: str, draft: Draft) -> str:
        """Stores what a turn asks for, and gives the confirmation in the caller's language."""
        message = SourceMessage(
            id=message_id,
            conversation_id=state.id,
            role="user",
            speaker=draft.name,
            content=draft.content,
            at=draft.created_at,
            trust="explicit",
        )
        learned = self._remembering.store(caller.tenant_id, wanted.scope, wanted.request, message, caller.actor, wanted.settings)
        if not learned.entities:
            return REFUSED.get(wanted.request.language, REFUSED["en"])
        return explicit.confirmation(wanted.request)

    # after it
    def stored(self, state: ConversationState) -> None:
        """Tells extraction; a message that is lost here is found by the sweeper."""
        if state.pending_turns and state.extract_at:
            self._extraction.tell(state)


def _trust(provenance: Sequence[Provenance]) -> Trust:
    """That of the least trusted source: a memory is no better than the worst of what it was put together from."""
    return min((source.trust for source in provenance), key=LEAST_TRUSTED_FIRST.index, default="user")


def _session(provenance: Sequence[Provenance]) -> str | None:
    """The conversation in which it was said last; what an application stored by itself has none."""
    return next((source.conversation_id for source in reversed(provenance) if source.conversation_id), None)


def _fact_line(hit: Hit) -> tuple[str, MemoryLine]:
    entity = hit.entity
    text = f"{entity.name}. {entity.description}" if entity.description and entity.description != entity.name else entity.name
    quotes = [source.quote for source in entity.provenance]
    return entity.id, MemoryLine(
        text=text,
        kind="fact",
        date=entity.valid_from or entity.created_at,
        speaker=entity.provenance[-1].speaker if entity.provenance else None,
        trust=_trust(entity.provenance),
        session=_session(entity.provenance),
        quotes=tuple(quote for quote in quotes if quote) if all(quotes) else (),
    )


def _message_line(found: MessageFound) -> tuple[str, MemoryLine]:
    message = found.message
    trust: Trust = "assistant" if message.role == "assistant" else message.trust
    text = message.content if len(message.content) <= MESSAGE_CHARACTERS else message.content[:MESSAGE_CHARACTERS] + "…"
    return message.id, MemoryLine(
        text=text,
        kind="message",
        date=message.created_at,
        speaker=message.name or message.role,
        trust=trust,
        session=message.conversation_id,
        quotes=(message.content,),
    )
