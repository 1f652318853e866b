"""Conversations: made, listed, changed, erased; their messages read, imported, rolled back."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pynamodb.transactions import TransactWrite

from tidemark.clock import Time, now
from tidemark.conversations import branch
from tidemark.conversations.access import ConversationAccess
from tidemark.conversations.history import History, head
from tidemark.conversations.model import Conversation, ConversationState, Draft, Message, Rollback, StoredMessage
from tidemark.conversations.requests import ConversationBody, ConversationPatch, ImportBody, ImportedMessage
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.turns import title_of, weighed
from tidemark.errors import ConflictError, InvalidError, NotFoundError
from tidemark.etags import check, etag
from tidemark.ids import new_id
from tidemark.memory.turn_memory import TurnMemory
from tidemark.models.reported import share
from tidemark.pages import fitting
from tidemark.privacy import traces
from tidemark.storage import keys, table
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.registry import Agents, KnowledgeBases
from tidemark.tenancy.tenants import TenantService

ATTEMPTS = 20
EXCERPTS, EXCERPT_CHARACTERS = 5, 360


class Imported(BaseModel):
    model_config = ConfigDict(frozen=True)

    imported: int
    message_ids: list[str]


class RolledBack(BaseModel):
    model_config = ConfigDict(frozen=True)

    head_message_id: str
    excluded_message_ids: list[str]


class Excerpt(BaseModel):
    message_id: str
    role: str
    text: str


class RollbackTold(BaseModel):
    to_message_id: str
    excluded_message_ids: list[str]
    created_at: Time


class SessionSummary(BaseModel):
    """CLIO's overview of a conversation, made without a model."""

    conversation_id: str
    title: str | None
    state: str
    workspace_id: str | None
    created_at: Time
    updated_at: Time
    message_count: int
    message_ids: list[str]
    excerpts: list[Excerpt]
    rollback: RollbackTold | None
    source: Literal["gact_visible_transcript_summary"] = "gact_visible_transcript_summary"


class ConversationService:
    def __init__(
        self,
        store: ConversationStore,
        history: History,
        access: ConversationAccess,
        tenants: TenantService,
        agents: Agents,
        knowledge_bases: KnowledgeBases,
        memory: TurnMemory,
    ) -> None:
        self._store, self._history, self._access = store, history, access
        self._tenants, self._agents, self._bases, self._memory = tenants, agents, knowledge_bases, memory

    # conversations
    def create(self, caller: Caller, body: ConversationBody) -> Conversation:
        """Raises NotFoundError for an agent or knowledge base that is not the tenant's, InvalidError for two subjects in query and body."""
        named = {one for one in (body.external_subject_id, caller.external_subject_id) if one is not None}
        if len(named) > 1:
            raise InvalidError.field("/external_subject_id", "This is another subject than the query's external_subject_id.")
        subject = next(iter(named), None)
        if body.agent_id is not None:
            agent_id = self._agents.find(caller.tenant_id, body.agent_id).id
        else:
            agent_id = self._tenants.stored(caller.tenant_id).default_agent_id
        if body.knowledge_base_id is not None:
            self._bases.find(caller.tenant_id, body.knowledge_base_id)
        at = now()
        state = ConversationState(
            id=new_id("cnv"),
            tenant_id=caller.tenant_id,
            external_subject_id=subject,
            knowledge_base_id=body.knowledge_base_id,
            agent_id=agent_id,
            workspace_id=body.workspace_id,
            title=body.title,
            metadata=body.metadata,
            created_at=at,
            updated_at=at,
            last_activity_at=at,
        )
        self._store.create(state)
        return state.public()

    def get(self, caller: Caller, conversation_id: str) -> Conversation:
        return self._access.find(caller, conversation_id).public()

    def recent(
        self, caller: Caller, *, workspace_id: str | None, knowledge_base_id: str | None, limit: int, before: str | None
    ) -> tuple[list[Conversation], str | None]:
        """Newest activity first. A dashboard user who names no subject lists the whole tenant."""

        def accept(state: ConversationState) -> bool:
            return workspace_id in (None, state.workspace_id) and knowledge_base_id in (None, state.knowledge_base_id)

        owner = None if caller.lists_whole_tenant else keys.owner(caller.external_subject_id)
        found, more = self._store.recent(caller.tenant_id, owner, accept, limit, before)
        return [state.public() for state in found], more

    def patch(self, caller: Caller, conversation_id: str, body: ConversationPatch, if_match: str | None) -> Conversation:
        changes = body.model_dump(exclude_unset=True)
        if changes.get("metadata", {}) is None:
            changes["metadata"] = {}
        return self._change(caller, conversation_id, if_match, {**changes, "updated_at": now()}).public()

    def _change(self, caller: Caller, conversation_id: str, if_match: str | None, changes: dict[str, object]) -> ConversationState:
        def attempt() -> ConversationState:
            state = self._access.find(caller, conversation_id)
            check(if_match, etag(state.public()))
            return self._store.update(state, **changes)

        return table.retried(attempt, "Somebody else is changing this conversation.", ATTEMPTS)

    def delete(self, caller: Caller, conversation_id: str, if_match: str | None) -> None:
        """Erases the conversation. It is gone for every reader before its parts are; a retry finishes what a crash left."""
        state = self._store.get(caller.tenant_id, conversation_id)
        if state is None or not caller.owns(state.external_subject_id):
            raise NotFoundError
        if state.state == "active":
            state = self._change(caller, conversation_id, if_match, {"state": "deleting", "extract_at": None})
        self._store.delete(state)

    # messages
    def messages(
        self, caller: Caller, conversation_id: str, *, whole_tree: bool, limit: int, after: str | None
    ) -> tuple[list[Message], str | None]:
        """The active branch or the whole tree, oldest first, a page at a time."""
        state = self._access.find(caller, conversation_id)
        path = None if whole_tree else branch.path_to(state.segments, state.head)
        upto = None if whole_tree else state.head_message_id
        if not whole_tree and upto is None:
            return [], None
        found: list[StoredMessage] = []
        for message in self._store.walk(state, path, after=after, upto=upto, page=limit + 1):
            found.append(message)
            if len(found) > limit:
                break
        fits = fitting(found[:limit], _bytes)
        more = len(found) > len(fits)
        loaded = self._store.load(caller.tenant_id, fits)
        return [message.public() for message in loaded], fits[-1].id if more and fits else None

    def import_messages(self, caller: Caller, conversation_id: str, body: ImportBody) -> Imported:
        """Appends a transcript at the head, all of it or nothing, without a model call."""
        earlier = traces.earlier()
        if earlier is not None and earlier.result is not None:
            self._access.find(caller, conversation_id)
            return Imported.model_validate(earlier.result)  # its worker died between the messages and the stored answer

        def attempt() -> tuple[ConversationState, list[StoredMessage]]:
            state = self._access.find(caller, conversation_id)
            base = head(state)
            if base.open_calls:
                raise ConflictError("The model waits for the results of its tools.", code="tool_results_pending")
            setting = self._access.setting(caller, state)
            learn = self._memory.learnable(setting, wanted=True)
            drafts = _drafts(body.messages, state.last_message_at, setting.model.factor, learn)
            changes = self._memory.pending(setting, state, drafts)
            if state.title is None:
                changes["title"] = title_of(drafts)
            return self._store.append(state, base.parent, base.parent_id, drafts, branch_tokens=base.tokens, changes=changes, also=_noted)

        changed, stored = table.retried(attempt, "Too many writers at the same time.", ATTEMPTS)
        usage.add(caller.tenant_id, messages=len(stored))
        self._memory.stored(changed)
        return _imported(stored)

    # rollback
    def rollback(self, caller: Caller, conversation_id: str, to_message_id: str) -> RolledBack:
        """Makes a message of the tree the head. Raises ConflictError inside a tool round."""

        def attempt() -> tuple[ConversationState, Rollback] | None:
            state = self._access.find(caller, conversation_id)
            base = self._history.base(state, True, to_message_id)
            target = self._store.message(state, to_message_id)
            if target is None or base.parent is None:
                raise NotFoundError
            if target.kind == "tool_calls" or (target.role == "tool" and base.open_calls):
                raise ConflictError("A rollback cannot end inside a tool round.", code="inside_tool_round")
            if base.parent == state.head or state.head is None:
                return None
            left = Rollback(to_message_id=to_message_id, left=state.head, to=base.parent, created_at=now())
            changed = self._store.update(
                state,
                head=base.parent,
                head_message_id=to_message_id,
                branch_tokens=base.tokens,
                open_calls=[],
                uncounted=share(state.uncounted, base.tokens, state.branch_tokens),
                rollback=left,
                updated_at=now(),
            )
            return changed, left

        moved = table.retried(attempt, "Somebody else is changing this conversation.", ATTEMPTS)
        return RolledBack(head_message_id=to_message_id, excluded_message_ids=self._excluded(*moved) if moved else [])

    def _excluded(self, state: ConversationState, done: Rollback) -> list[str]:
        """The messages of the branch that was left which are not on the one that was taken up."""
        left, kept = branch.path_to(state.segments, done.left), branch.path_to(state.segments, done.to)
        return [message.id for message in self._store.walk(state, left) if not branch.on_path(kept, message.position)]

    # the overview
    def summary(self, caller: Caller, conversation_id: str) -> SessionSummary:
        """Title, times, ids and the last excerpts of the visible branch."""
        state = self._access.find(caller, conversation_id)
        path = branch.path_to(state.segments, state.head)
        visible = list(self._store.walk(state, path, upto=state.head_message_id)) if state.head_message_id else []
        last = self._store.load(caller.tenant_id, visible[-EXCERPTS:])
        told = state.rollback
        return SessionSummary(
            conversation_id=state.id,
            title=state.title,
            state=state.state,
            workspace_id=state.workspace_id,
            created_at=state.created_at,
            updated_at=state.updated_at,
            message_count=len(visible),
            message_ids=[message.id for message in visible],
            excerpts=[
                Excerpt(message_id=message.id, role=message.role, text=message.content[:EXCERPT_CHARACTERS])
                for message in last
                if message.content.strip()
            ],
            rollback=RollbackTold(
                to_message_id=told.to_message_id,
                excluded_message_ids=self._excluded(state, told),
                created_at=told.created_at,
            )
            if told
            else None,
        )


def _imported(stored: Sequence[StoredMessage]) -> Imported:
    return Imported(imported=len(stored), message_ids=[message.id for message in stored])


def _noted(write: TransactWrite, stored: Sequence[StoredMessage]) -> None:
    for item in traces.noted(_imported(stored).model_dump()):
        write.save(item)


def _bytes(message: StoredMessage) -> int:
    """An upper bound of a message's bytes in an answer, from what is known without its text."""
    return 1500 + 4 * message.characters + 6 * message.attachment_tokens


def _drafts(messages: Sequence[ImportedMessage], last: datetime | None, factor: float, learn: str | None) -> list[Draft]:
    """The messages in their order. Raises InvalidError for a time before the message in front, or in the future."""
    present = now()
    drafts: list[Draft] = []
    for place, message in enumerate(messages):
        given = message.created_at
        at = given.astimezone(UTC) if given else max(present, last) if last else present
        at = at.replace(microsecond=at.microsecond // 1000 * 1000)
        if given and at > present:
            raise InvalidError.field(f"/messages/{place}/created_at", "This time lies in the future.")
        if given and last and at < last:
            raise InvalidError.field(f"/messages/{place}/created_at", "This time lies before the message in front of it.")
        offset = given.utcoffset() if given else None
        last = at
        drafts.append(
            weighed(
                Draft(
                    role=message.role,
                    content=message.content,
                    name=message.name,
                    tokens=0,
                    created_at=at,
                    zone_minutes=int(offset.total_seconds() // 60) if offset else 0,
                    scope=learn,
                    trust="import",
                ),
                factor,
            )
        )
    return drafts
