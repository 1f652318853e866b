"""Searching past sessions by words, as CLIO does: within one session, its workspace, or all of the owner's, each decision audited."""

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidemark.clock import Time
from tidemark.conversations.access import ConversationAccess
from tidemark.conversations.context import ContextService, RecallItem
from tidemark.conversations.model import ConversationState, StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.words import Match, excerpt, match
from tidemark.errors import ForbiddenError
from tidemark.search import asking
from tidemark.search.port import Query, SearchIndex
from tidemark.storage import keys
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller

ARM_LIMIT = 300
MOST_SESSIONS = 500  # of a workspace, the most recently active

SearchScope = Literal["session", "current_workspace", "global"]
ALLOWED: dict[SearchScope, str] = {
    "session": "allow_same_session",
    "current_workspace": "allow_same_workspace_user_intent",
    "global": "allow_global_user_intent",
}
DENIED: dict[SearchScope, str] = {
    "current_workspace": "deny_cross_session_requires_intent",
    "global": "deny_global_requires_intent",
}


class SessionHit(BaseModel):
    model_config = ConfigDict(frozen=True)

    session_id: str
    session_title: str | None
    workspace_id: str | None
    message_id: str
    part_id: str
    role: str
    created_at: Time
    updated_at: Time
    text: str
    score: float
    match_terms: list[str]


def decide(scope: SearchScope, user_intent: str | None, other_workspace: bool) -> tuple[bool, str]:
    """Whether a search may go as far as it asks, and the decision's name: wider scopes need a stated user intent."""
    if other_workspace:
        return False, "deny_other_workspace"
    if scope != "session" and not (user_intent or "").strip():
        return False, DENIED[scope]
    return True, ALLOWED[scope]


class SessionSearch:
    def __init__(
        self,
        index: Callable[[], SearchIndex],
        store: ConversationStore,
        access: ConversationAccess,
        context: ContextService,
    ) -> None:
        self._index, self._store, self._access, self._context = index, store, access, context

    def search(
        self,
        caller: Caller,
        q: str,
        conversation_id: str,
        scope: SearchScope,
        user_intent: str | None,
        workspace_id: str | None,
    ) -> tuple[list[SessionHit], str]:
        """All hits, best first, and the decision. Raises ForbiddenError with the decision as its code."""
        state = self._access.find(caller, conversation_id)
        other = workspace_id is not None and workspace_id != state.workspace_id
        allowed, decision = decide(scope, user_intent, other)
        audit.record(caller, "session_search", conversation_id, decision=decision, scope=scope)
        if not allowed:
            raise ForbiddenError("This search may not go that far.", code=decision)
        sessions = self._sessions(caller, state, scope)
        found = self._matching(state, q, list(sessions) if sessions is not None else None)
        hits = [
            _hit(owner, message, matched)
            for message, matched in found
            if (owner := self._session(caller, state, message.conversation_id, sessions)) is not None
        ]
        return hits, decision

    def _sessions(self, caller: Caller, state: ConversationState, scope: SearchScope) -> dict[str, ConversationState] | None:
        """The conversations that are searched; None for all of the owner's."""
        if scope == "session" or (scope == "current_workspace" and state.workspace_id is None):
            return {state.id: state}
        if scope == "global":
            return None
        owner = keys.owner(state.external_subject_id)
        found, _ = self._store.recent(caller.tenant_id, owner, lambda one: one.workspace_id == state.workspace_id, MOST_SESSIONS, None)
        return {one.id: one for one in (state, *found)}

    def _session(
        self, caller: Caller, state: ConversationState, id: str, sessions: dict[str, ConversationState] | None
    ) -> ConversationState | None:
        if sessions is not None:
            return sessions.get(id)
        found = self._store.get(caller.tenant_id, id)
        mine = found is not None and found.state == "active" and found.external_subject_id == state.external_subject_id
        return found if mine else None

    def _matching(self, state: ConversationState, words: str, conversations: Sequence[str] | None) -> list[tuple[StoredMessage, Match]]:
        """Messages that have the words, best first, the newer of two alike. Raises UnavailableError while the index is away."""
        query = Query(
            state.tenant_id,
            keys.owner(state.external_subject_id),
            "message",
            words,
            ARM_LIMIT,
            conversation_ids=frozenset(conversations or ()),
        )
        candidates = asking.candidates(self._index, query)
        stored = self._store.messages(state.tenant_id, [(one.conversation_id, one.id) for one in candidates])
        loaded = self._store.load(state.tenant_id, [message for message in stored if message.role != "notice"])
        found = [(message, matched) for message in loaded if (matched := match(message.content, words))]
        return sorted(found, key=lambda pair: (-pair[1].score, -pair[0].created_at.timestamp(), pair[0].id))

    def recall(self, caller: Caller, conversation_id: str, query: str, limit: int) -> list[RecallItem]:
        """What was said in one conversation with these words, best first."""
        state = self._access.find(caller, conversation_id)
        found = self._matching(state, query, [state.id])[:limit]
        scores = {message.id: matched.score for message, matched in found}
        items = self._context.items(state, [message for message, _ in found])
        return [item.model_copy(update={"score": scores[item.id]}) for item in items]


def _hit(session: ConversationState, message: StoredMessage, matched: Match) -> SessionHit:
    return SessionHit(
        session_id=session.id,
        session_title=session.title,
        workspace_id=session.workspace_id,
        message_id=message.id,
        part_id=f"{message.id}#text",
        role=message.role,
        created_at=message.created_at,
        updated_at=session.last_activity_at,
        text=excerpt(message.content, matched.start),
        score=matched.score,
        match_terms=list(matched.terms),
    )
