"""Writes the contract from the handlers: `python -m infra.openapi [--check]`.

With --check nothing is written and a drift of the committed file is an error.
"""

import argparse
import copy
import importlib
import json
import re
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tidemark.console.files import TYPES

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "layers/core/tidemark/http/openapi.json"
FUNCTIONS = ("chat", "console", "conversations", "memories", "tenants")
OPEN = ("/health", "/openapi.json", "/docs", "/console", "/console/{name}")
SCOPE_PARAMETERS = [
    {
        "name": "external_subject_id",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        "description": "Whose conversations or memory the call is about.",
    },
    {
        "name": "knowledge_base_id",
        "in": "query",
        "required": False,
        "schema": {"type": "string"},
        "description": "The knowledge base whose memory the call is about.",
    },
]
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "The same key and request give the stored answer for 24 hours.",
}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "message"],
                "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
STREAMED = {
    "/v1/conversations/{conversation_id}/messages": "With `stream` or `Accept: text/event-stream`: message_start, compression_start,"
    " compression_end, delta, tool_call, then message_end (the answer) or error (a problem), each with one JSON object.",
    "/v1/chat/completions": "With `stream`: chat.completion.chunk objects, then [DONE].",
}
EXPORT = (
    "JSON lines {type, data}. What does not fit one answer ends with a line of type `next`, whose data.cursor asks for the rest; Link with"
    " rel=next has the same address."
)
JSON_OBJECT: dict[str, Any] = {"type": "object"}
MCP: dict[str, Any] = {
    "post": {
        "summary": "POST /mcp",
        "operationId": "mcp",
        "description": "MCP over Streamable HTTP, stateless. The query names the scope; the tools are listed by `tools/list`.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": JSON_OBJECT}}},
        "responses": {
            "200": {"description": "A JSON-RPC response", "content": {"application/json": {"schema": JSON_OBJECT}}},
            "202": {"description": "A notification was taken"},
            "400": {"description": "A JSON-RPC error", "content": {"application/json": {"schema": JSON_OBJECT}}},
            "406": {"description": "The client takes no JSON", "content": {"application/json": {"schema": JSON_OBJECT}}},
        },
    }
}
TEXTS = {
    "/docs": (("text/html",), "A page to read the contract"),
    "/console": (("text/html",), "The web console"),
    "/console/{name}": (tuple(TYPES.values()), "A file of the web console"),
    "/v1/subjects/export": (("application/x-ndjson",), EXPORT),
    "/v1/subjects/{external_subject}/export": (("application/x-ndjson",), EXPORT),
}
OPENAI_ROUTES = ("/v1/chat/completions", "/v1/models")
OPENAI_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }
    },
}
PROBLEM_ANSWER = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
STATUSES = {
    "POST /v1/conversations": 201,
    "POST /v1/conversations/{conversation_id}/import": 201,
    "POST /v1/conversations/{conversation_id}/extract": 202,
    "POST /v1/memories/entities": (200, 201),
    "POST /v1/memories/relations": (200, 201),
    "POST /v1/memories/remember": 201,
    "POST /v1/tenants": 201,
    "POST /v1/tenants/{tenant_id}/api-keys": 201,
    "POST /v1/knowledge-bases": 201,
    "POST /v1/agents": 201,
    "DELETE /v1/subjects": (200, 202),
    "DELETE /v1/subjects/{external_subject}": (200, 202),
    "DELETE /v1/tenants/{tenant_id}": (200, 202),
    "DELETE /v1/conversations/{conversation_id}": 204,
    "DELETE /v1/tenants/{tenant_id}/api-keys/{key_id}": 204,
    "DELETE /v1/knowledge-bases/{base_id}": 204,
    "DELETE /v1/agents/{agent_id}": 204,
}

# Operations carry the name of their function, which generated clients call them by; these names say too little outside of their module.
NAMES = {
    "GET /console": "get_console",
    "GET /console/{name}": "get_console_file",
    "GET /v1/conversations": "list_conversations",
    "POST /v1/conversations": "create_conversation",
    "GET /v1/conversations/{conversation_id}": "get_conversation",
    "PATCH /v1/conversations/{conversation_id}": "update_conversation",
    "DELETE /v1/conversations/{conversation_id}": "delete_conversation",
    "GET /v1/conversations/{conversation_id}/messages": "list_messages",
    "GET /v1/conversations/{conversation_id}/turns/{turn_id}": "get_turn",
    "GET /v1/conversations/{conversation_id}/context": "get_context_usage",
    "GET /v1/conversations/{conversation_id}/context/preferences": "get_preferences",
    "GET /v1/conversations/{conversation_id}/context/frames": "list_frames",
    "GET /v1/conversations/{conversation_id}/context/frames/{frame_id}": "get_frame",
    "GET /v1/conversations/{conversation_id}/compactions": "list_compactions",
    "GET /v1/conversations/{conversation_id}/summary": "get_summary",
    "GET /v1/models": "list_models",
    "POST /v1/memories/entities": "upsert_entity",
    "POST /v1/memories/entities/batch-delete": "delete_entities",
    "GET /v1/memories/entities/{entity_id}": "get_entity",
    "PUT /v1/memories/entities/{entity_id}": "put_entity",
    "DELETE /v1/memories/entities/{entity_id}": "delete_entity",
    "GET /v1/memories/entities/{entity_id}/history": "list_entity_history",
    "POST /v1/memories/entities/{entity_id}/restore": "restore_entity",
    "GET /v1/memories/graph": "get_graph",
    "POST /v1/memories/relations": "create_relation",
    "DELETE /v1/memories/relations/{relation_id}": "delete_relation",
    "POST /v1/memories/search": "search_memories",
    "GET /v1/extractions": "list_extractions",
    "GET /v1/audit": "list_audit",
    "GET /v1/usage": "get_usage",
}
# What the operations are grouped by, in the reference and in generated clients.
TAGS = (
    ("/v1/conversations", "conversations"),
    ("/v1/search/sessions", "conversations"),
    ("/v1/chat", "completions"),
    ("/v1/models", "completions"),
    ("/v1/memories", "memories"),
    ("/v1/extractions", "memories"),
    ("/v1/", "administration"),
    ("/", "service"),
)


def document() -> dict[str, Any]:
    """The whole contract as OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for name in FUNCTIONS:
        app = importlib.import_module(f"functions.{name}.handler").app
        part = json.loads(app.get_openapi_json_schema(title="Tidemark", version="1", openapi_version="3.1.0"))
        for path, item in part["paths"].items():
            paths.setdefault(path, {}).update(item)
        schemas.update(part.get("components", {}).get("schemas", {}))
    paths["/mcp"] = copy.deepcopy(MCP)
    for path, item in paths.items():
        for method, operation in item.items():
            _complete(path, method, operation)
    if unknown := NAMES.keys() - {f"{method.upper()} {path}" for path, item in paths.items() for method in item}:
        raise ValueError(f"names of operations that are not there: {sorted(unknown)}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidemark",
            "version": "1",
            "description": "Conversation memory: context that loses nothing, and durable memory across conversations.",
        },
        "servers": [{"url": "/api"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted({**schemas, "OpenAIError": OPENAI_ERROR, "Problem": PROBLEM}.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """What every route has in common and no signature says."""
    operation["operationId"] = _name(path, method, operation["operationId"])
    operation["tags"] = [next(tag for start, tag in TAGS if path.startswith(start))]
    parameters = operation.setdefault("parameters", [])
    if path in OPEN:
        operation["security"] = []
    else:
        parameters += [one for one in SCOPE_PARAMETERS if one["name"] not in {known["name"] for known in parameters}]
    if method in ("post", "put", "patch", "delete"):
        parameters.append(IDEMPOTENCY_KEY)
    answers = operation["responses"]
    answers.pop("422", None)
    statuses = STATUSES.get(f"{method.upper()} {path}", 200)
    good = answers.pop("200")
    for status in statuses if isinstance(statuses, tuple) else (statuses,):
        answers[str(status)] = {"description": "No content"} if status == 204 else good
    if path in TEXTS:
        media, told = TEXTS[path]
        good["content"] = {one: {"schema": {"type": "string", "description": told}} for one in media}
    if path.startswith("/console"):
        answers["304"] = {"description": "The file is the one that If-None-Match names"}
    if path == "/console":
        answers["308"] = {"description": "To /console/, where the page finds its files"}
    if path in STREAMED and method == "post":
        answers["200"]["content"]["text/event-stream"] = {"schema": {"type": "string", "description": STREAMED[path]}}
    if path in OPENAI_ROUTES:
        error = {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}
        # what the gateway refuses before a function sees it is a problem on these routes too
        answers |= {str(status): {"content": error} for status in (*_problems(path, method, operation), "5XX")}
    for status in _problems(path, method, operation):
        answers[str(status)] = _problem(answers, str(status), HTTPStatus(status).phrase)
    answers["5XX"] = _problem(answers, "5XX", "A problem (RFC 9457): ours, or of what we depend on")


def _name(path: str, method: str, generated: str) -> str:
    own = generated.removesuffix(f"_{method}").removesuffix(re.sub(r"\W", "_", path))
    return NAMES.get(f"{method.upper()} {path}", own)


def _problems(path: str, method: str, operation: dict[str, Any]) -> list[int]:
    """The refusals that a caller has to expect of a route."""
    if path in OPEN:
        return [404] if "{" in path else []
    # 404: an id of the path or body, or the query's knowledge base
    found = [401, 403, 404, 429]
    if "requestBody" in operation or any(one["name"] == "cursor" for one in operation["parameters"]):
        found.append(400)
    if "requestBody" in operation:
        found += [413, 415]
    if "requestBody" in operation or operation["parameters"]:
        found.append(422)
    if method != "get":
        found += [409, 412]
    elif path.startswith("/v1/knowledge-bases/{base_id}/"):
        found.append(409)
    return sorted(found)


def _problem(answers: dict[str, Any], status: str, description: str) -> dict[str, Any]:
    """A problem beside what else the route answers with this status."""
    others = answers.get(status, {}).get("content", {})
    return {"description": description, "content": {**others, **PROBLEM_ANSWER["content"]}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    if arguments.check:
        if not TARGET.exists() or TARGET.read_text() != text:
            print(f"{TARGET.relative_to(ROOT)} does not say what the handlers do; run `make openapi`", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
