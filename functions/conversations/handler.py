"""Conversations, their messages and their context."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from tidemark import bootstrap
from tidemark.conversations.context import CompactAnswer, ContextUsage, RecallItem, pages
from tidemark.conversations.model import Compaction, Conversation, Frame, Message, Preferences, Turn
from tidemark.conversations.requests import (
    CompactBody,
    ConversationBody,
    ConversationPatch,
    ImportBody,
    PreferencesPatch,
    RecallBody,
    RollbackBody,
)
from tidemark.conversations.service import Imported, RolledBack, SessionSummary
from tidemark.conversations.session_search import SearchScope, SessionHit
from tidemark.http.app import ChatCaller, Handler, IfMatch, MemoryWriter, answer, api, created, deadline, no_content, tagged
from tidemark.memory.extraction import Job
from tidemark.pages import Page

app = api()
handler = Handler(app, bootstrap.settings, bootstrap.idempotency)

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query()]


class SessionHits(Page[SessionHit]):
    scope: SearchScope
    decision: str


class Recalled(Page[RecallItem]):
    truncated: bool


@app.post("/v1/conversations")
def create(body: Annotated[ConversationBody, Body()], caller: ChatCaller) -> Response[Conversation]:
    return created(bootstrap.conversations().create(caller, body))


@app.get("/v1/conversations")
def list_all(
    caller: ChatCaller,
    workspace_id: Annotated[str | None, Query()] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[Page[Conversation]]:
    of = (caller.tenant_id, "conversations", caller.external_subject_id, caller.knowledge_base_id, workspace_id)
    return answer(
        bootstrap.cursors().page(
            cursor,
            of,
            lambda place: bootstrap.conversations().recent(
                caller, workspace_id=workspace_id, knowledge_base_id=caller.knowledge_base_id, limit=limit, before=place
            ),
        )
    )


@app.get("/v1/conversations/<conversation_id>")
def get(conversation_id: str, caller: ChatCaller) -> Response[Conversation]:
    return tagged(bootstrap.conversations().get(caller, conversation_id))


@app.patch("/v1/conversations/<conversation_id>")
def patch(
    conversation_id: str, body: Annotated[ConversationPatch, Body()], caller: ChatCaller, if_match: IfMatch
) -> Response[Conversation]:
    return tagged(bootstrap.conversations().patch(caller, conversation_id, body, if_match))


@app.delete("/v1/conversations/<conversation_id>")
def delete(conversation_id: str, caller: ChatCaller, if_match: IfMatch) -> Response[None]:
    bootstrap.conversations().delete(caller, conversation_id, if_match)
    return no_content()


@app.get("/v1/conversations/<conversation_id>/messages")
def messages(
    conversation_id: str,
    caller: ChatCaller,
    branch: Annotated[Literal["all"] | None, Query()] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[Page[Message]]:
    of = (caller.tenant_id, "messages", conversation_id, branch)
    return answer(
        bootstrap.cursors().page(
            cursor,
            of,
            lambda place: bootstrap.conversations().messages(caller, conversation_id, whole_tree=branch == "all", limit=limit, after=place),
        )
    )


@app.get("/v1/conversations/<conversation_id>/turns/<turn_id>")
def turn(conversation_id: str, turn_id: str, caller: ChatCaller) -> Response[Turn]:
    return tagged(bootstrap.turns().get(caller, conversation_id, turn_id))


@app.post("/v1/conversations/<conversation_id>/import")
def import_messages(conversation_id: str, body: Annotated[ImportBody, Body()], caller: ChatCaller) -> Response[Imported]:
    return created(bootstrap.conversations().import_messages(caller, conversation_id, body))


@app.post("/v1/conversations/<conversation_id>/rollback")
def rollback(conversation_id: str, body: Annotated[RollbackBody, Body()], caller: ChatCaller) -> Response[RolledBack]:
    return answer(bootstrap.conversations().rollback(caller, conversation_id, body.to_message_id))


@app.get("/v1/conversations/<conversation_id>/summary")
def summary(conversation_id: str, caller: ChatCaller) -> Response[SessionSummary]:
    return tagged(bootstrap.conversations().summary(caller, conversation_id))


@app.get("/v1/conversations/<conversation_id>/context/preferences")
def preferences(conversation_id: str, caller: ChatCaller) -> Response[Preferences]:
    return tagged(bootstrap.context().preferences(caller, conversation_id))


@app.patch("/v1/conversations/<conversation_id>/context/preferences")
def patch_preferences(
    conversation_id: str, body: Annotated[PreferencesPatch, Body()], caller: ChatCaller, if_match: IfMatch
) -> Response[Preferences]:
    return tagged(bootstrap.context().patch_preferences(caller, conversation_id, body, if_match))


@app.get("/v1/conversations/<conversation_id>/context")
def usage(conversation_id: str, caller: ChatCaller) -> Response[ContextUsage]:
    return answer(bootstrap.context().usage(caller, conversation_id))


@app.post("/v1/conversations/<conversation_id>/compact")
def compact(conversation_id: str, body: Annotated[CompactBody, Body()], caller: ChatCaller) -> Response[CompactAnswer]:
    return answer(bootstrap.context().compact(caller, conversation_id, body, deadline(app)))


@app.get("/v1/conversations/<conversation_id>/compactions")
def compactions(conversation_id: str, caller: ChatCaller, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[Compaction]]:
    of = (caller.tenant_id, "compactions", conversation_id)
    return answer(
        bootstrap.cursors().page(cursor, of, lambda place: bootstrap.context().compactions(caller, conversation_id, limit, place))
    )


@app.get("/v1/conversations/<conversation_id>/context/frames")
def frames(conversation_id: str, caller: ChatCaller, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[Frame]]:
    of = (caller.tenant_id, "frames", conversation_id)
    return answer(bootstrap.cursors().page(cursor, of, lambda place: bootstrap.context().frames(caller, conversation_id, limit, place)))


@app.get("/v1/conversations/<conversation_id>/context/frames/<frame_id>")
def frame(conversation_id: str, frame_id: str, caller: ChatCaller) -> Response[Frame]:
    return tagged(bootstrap.context().frame(caller, conversation_id, frame_id))


@app.post("/v1/conversations/<conversation_id>/recall")
def recall(conversation_id: str, body: Annotated[RecallBody, Body()], caller: ChatCaller) -> Response[Recalled]:
    of = (caller.tenant_id, "recall", conversation_id, body.ids, body.query, body.limit)
    place = bootstrap.cursors().read(body.cursor, *of)
    start, offset = (int(number) for number in (place or "0:0").split(":"))
    if body.query is not None:
        items = bootstrap.session_search().recall(caller, conversation_id, body.query, body.limit)
    else:
        items = bootstrap.context().recalled(caller, conversation_id, body)
    page, more = pages(items, start, offset)
    cursor = bootstrap.cursors().write(f"{more[0]}:{more[1]}", *of) if more else None
    return answer(Recalled(items=page, truncated=more is not None, next_cursor=cursor))


@app.post("/v1/conversations/<conversation_id>/extract")
def extract(conversation_id: str, caller: MemoryWriter) -> Response[Job]:
    state = bootstrap.conversation_access().find(caller, conversation_id)
    return answer(bootstrap.extraction().request(state), 202)


@app.get("/v1/search/sessions")
def search_sessions(
    caller: ChatCaller,
    q: Annotated[str, Query(min_length=1, max_length=2000, pattern=r"\S")],
    conversation_id: Annotated[str, Query()],
    scope: Annotated[SearchScope, Query()] = "session",
    user_intent: Annotated[str | None, Query(max_length=2000)] = None,
    workspace_id: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 20,
    cursor: Cursor = None,
) -> Response[SessionHits]:
    of = (caller.tenant_id, "sessions", caller.external_subject_id, q, conversation_id, scope, workspace_id)
    start = int(bootstrap.cursors().read(cursor, *of) or 0)
    hits, decision = bootstrap.session_search().search(caller, q, conversation_id, scope, user_intent, workspace_id)
    more = bootstrap.cursors().write(str(start + limit), *of) if len(hits) > start + limit else None
    page = hits[start : start + limit]
    return answer(SessionHits(items=page, next_cursor=more, scope=scope, decision=decision))
