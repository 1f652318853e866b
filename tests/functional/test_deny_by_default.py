"""Deny by default: every route of the contract, called by nobody and by callers who may do nothing there."""

import json
from typing import Any

from tidemark.http.reference import openapi_file
from tidemark.tenancy.caller import ALL_SCOPES, Caller

from tests.support import events
from tests.support.world import World, serving

OPEN = {"/health", "/openapi.json", "/docs", "/console", "/console/{name}"}
IDS = {
    "conversation_id": "cnv_01JD0000000000000000000000",
    "tenant_id": "ten_01JD0000000000000000000000",
    "base_id": "kb_01JD0000000000000000000000",
}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, item in openapi_file()["paths"].items()
        for method, operation in item.items()
        if path not in OPEN
    ]


def named(path: str) -> str:
    for name, id in IDS.items():
        path = path.replace(f"{{{name}}}", id)
    return path.replace("{", "").replace("}", "")


def test_nobody_gets_anything(aws: World) -> None:
    served = []
    for method, path, _ in operations():
        event = events.http(method, named(path), caller=None, body=None, query={}, headers={})
        answer = aws.serve(serving(method, path), event)
        shown = answer.body.get("error", answer.body)
        served += [(method, path, answer)] if (answer.status, shown["code"]) != (401, "unauthorized") else []
    assert served == []


def test_a_token_without_scopes_gets_nothing(aws: World) -> None:
    caller = Caller(kind="api_key", id="key_x", tenant_id=aws.tenant(), scopes=frozenset())
    served = []
    for method, path, _ in operations():
        if path == "/mcp":
            continue  # a server of tools, each with its own scope: below
        body = json.dumps(example(method, path)) if method in ("POST", "PUT", "PATCH") else None
        event = events.http(method, named(path), caller=caller.model_dump_json(), body=body, query=required(path))
        answer = aws.serve(serving(method, path), event)
        served += [(method, path, answer)] if answer.status != 403 else []
    assert served == []


def test_a_token_without_scopes_gets_no_tool(aws: World) -> None:
    nobody = aws.key(aws.tenant(), "ada", scopes=[])
    for tool in ("search_memory", "session_search", "remember", "forget"):
        told = nobody.tool(tool, query="x").body["result"]
        assert told["isError"]
        assert "insufficient_scope" in told["content"][0]["text"]


def test_every_scope_of_a_key_is_needed_somewhere() -> None:
    assert set(ALL_SCOPES) == {"chat", "memory:read", "memory:write", "admin"}


BODIES: dict[str, Any] = {
    "POST /v1/conversations/{conversation_id}/messages": {"content": "hello"},
    "POST /v1/conversations/{conversation_id}/import": {"messages": [{"role": "user", "content": "x"}]},
    "POST /v1/conversations/{conversation_id}/rollback": {"to_message_id": "msg_x"},
    "POST /v1/conversations/{conversation_id}/recall": {"query": "x"},
    "POST /v1/chat/completions": {"model": "any", "messages": [{"role": "user", "content": "x"}]},
    "POST /v1/memories/entities": {"name": "x", "entity_type": "fact"},
    "POST /v1/memories/entities/batch-delete": {"ids": ["ent_x"]},
    "POST /v1/memories/entities/{entity_id}/restore": {"version": 1},
    "POST /v1/memories/relations": {"source_entity_id": "ent_x", "target_entity_id": "ent_y", "relation_type": "knows"},
    "POST /v1/memories/search": {"query": "x"},
    "POST /v1/memories/remember": {"text": "x"},
    "POST /v1/memories/forget": {"query": "x"},
    "POST /v1/tenants": {"name": "x"},
    "PATCH /v1/tenants/{tenant_id}": {"name": "x"},
    "POST /v1/tenants/{tenant_id}/api-keys": {"name": "x", "scopes": ["chat"]},
    "POST /v1/knowledge-bases": {"name": "x"},
    "POST /v1/agents": {"name": "x"},
    "PUT /v1/admin/site-settings": {
        "category": "memory",
        "settings": {
            "memory_async_extraction_enabled": True,
            "memory_extraction_model_id": "",
            "memory_extraction_cooldown_seconds": 180,
            "memory_extraction_max_pending_turns": 6,
        },
    },
}


def example(method: str, path: str) -> Any:
    """A body that is valid, so that the refusal is about the caller."""
    return BODIES.get(f"{method} {path}", {})


def required(path: str) -> dict[str, str]:
    if path == "/v1/search/sessions":
        return {"q": "x", "conversation_id": "cnv_x"}
    return {"category": "memory"} if path == "/v1/admin/site-settings" else {}
