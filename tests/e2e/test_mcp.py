"""The MCP server through the local stack, with the official client."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.local_stack import Stack

pytestmark = pytest.mark.emulator
TOOLS = {
    "session_search", "session_read_summary", "session_read_context_frame", "recall_context", "search_memory", "get_memory_subgraph",
    "create_memory_entity", "create_memory_relation", "update_memory_entity", "remember", "forget",
}  # fmt: skip
READING = {
    "session_search", "session_read_summary", "session_read_context_frame", "recall_context", "search_memory", "get_memory_subgraph",
}  # fmt: skip


@asynccontextmanager
async def session_of(stack: Stack, subject: str | None, key: str | None = None) -> AsyncIterator[ClientSession]:
    named = f"?external_subject_id={subject}" if subject else ""
    headers = {"Authorization": f"Bearer {key or stack.credentials['api_key']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        streamable_http_client(f"{stack.base_url}/mcp{named}", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield session


def talk(stack: Stack, subject: str | None, what: Callable[[ClientSession], Awaitable[Any]], key: str | None = None) -> Any:
    async def run() -> Any:
        async with session_of(stack, subject, key) as session:
            return await what(session)

    return asyncio.run(run())


async def called(session: ClientSession, name: str, /, **arguments: Any) -> Any:
    result = await session.call_tool(name, arguments)
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(session: ClientSession, name: str, /, **arguments: Any) -> dict[str, Any]:
    result = await session.call_tool(name, arguments)
    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    content = result.content[0]
    assert isinstance(content, types.TextContent)
    told: dict[str, Any] = json.loads(content.text)
    return told


def test_tools_are_listed_with_schemas_and_hints(stack: Stack) -> None:
    async def look(session: ClientSession) -> list[types.Tool]:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in talk(stack, "mia", look)}
    assert set(tools) == TOOLS
    assert all(tool.input_schema["type"] == "object" and tool.description for tool in tools.values())
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations}
    assert set(hints) == TOOLS
    assert {name for name, hint in hints.items() if hint.read_only_hint} == READING
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {"forget"}
    assert all(hint.title and hint.open_world_hint is False for hint in hints.values())


def test_what_is_remembered_is_found_related_changed_and_forgotten(stack: Stack) -> None:
    async def use(session: ClientSession) -> None:
        await called(session, "remember", text="My boat is called Petrel.")
        found = await called(session, "search_memory", query="What is my boat called?")
        assert "Petrel" in json.dumps(found["items"])
        await called(session, "create_memory_entity", name="Ruth", entity_type="person", description="Sister")
        await called(session, "create_memory_entity", name="Lisbon", entity_type="location")
        related = await called(session, "create_memory_relation", source="ruth", target="Lisbon", relation_type="located_in")
        assert related["created"] is True
        changed = await called(session, "update_memory_entity", entity="Ruth", description="Younger sister", properties={"age": 30})
        assert (changed["entity"]["description"], changed["entity"]["properties"]) == ("Younger sister", {"age": 30})
        graph = await called(session, "get_memory_subgraph", entities=["Ruth"])
        assert {entity["name"] for entity in graph["entities"]} == {"Ruth", "Lisbon"}
        candidates = await called(session, "forget", ids=[changed["entity"]["id"]])
        assert (candidates["dry_run"], candidates["deleted"]) == (True, 0)
        assert (await called(session, "forget", ids=[changed["entity"]["id"]], dry_run=False))["deleted"] == 1
        assert (await refused(session, "update_memory_entity", entity="Ruth"))["code"] == "entity_not_found"

    talk(stack, "mia", use)


def test_sessions_are_read(stack: Stack) -> None:
    with stack.client() as api:
        kept = api.post("/v1/conversations", json={"external_subject_id": "mio"}).json()["id"]
        said = {"content": "The lantern is copper."}
        turn = api.post(f"/v1/conversations/{kept}/messages", json=said, params={"external_subject_id": "mio"}).json()
        first = api.get(f"/v1/conversations/{kept}/messages", params={"external_subject_id": "mio"}).json()["items"][0]["id"]

    async def use(session: ClientSession) -> None:
        assert (await called(session, "session_read_summary", conversation_id=kept))["message_count"] == 2
        assert (await called(session, "session_read_context_frame", conversation_id=kept))["turn_id"] == turn["turn_id"]
        recalled = await called(session, "recall_context", conversation_id=kept, ids=[first])
        assert [item["content"] for item in recalled["items"]] == ["The lantern is copper."]
        assert (await called(session, "session_search", query="copper", conversation_id=kept))["decision"] == "allow_same_session"
        denied = await refused(session, "session_search", query="copper", conversation_id=kept, scope="global")
        assert denied["code"] == "deny_global_requires_intent"

    async def foreign(session: ClientSession) -> None:
        assert (await refused(session, "session_read_summary", conversation_id=kept))["code"] == "not_found"

    talk(stack, "mio", use)
    talk(stack, "eva", foreign)


def test_wrong_arguments_are_errors_of_the_tool(stack: Stack) -> None:
    async def use(session: ClientSession) -> None:
        for name, arguments in (
            ("search_memory", {}),
            ("search_memory", {"query": "x", "more": 1}),
            ("search_memory", {"query": "x", "top_k": "5"}),
            ("recall_context", {"conversation_id": "cnv_none"}),
            ("forget", {}),
        ):
            told = await refused(session, name, **arguments)
            assert (told["code"], bool(told["errors"])) == ("validation_failed", True)
        assert (await refused(session, "session_read_summary", conversation_id="cnv_none"))["code"] == "not_found"
        assert (await refused(session, "no_such_tool"))["code"] == "unknown_tool"
        await called(session, "search_memory", query="still alive?")

    talk(stack, "mia", use)


def test_without_a_subject_there_is_no_memory(stack: Stack) -> None:
    async def use(session: ClientSession) -> None:
        assert (await refused(session, "remember", text="My boat is called Petrel."))["code"] == "memory_scope_unavailable"
        assert (await called(session, "search_memory", query="boat"))["abstained"] is True

    talk(stack, None, use)


def test_a_token_has_the_tools_of_its_scopes(stack: Stack) -> None:
    with stack.client("platform_admin_token") as platform:
        made = platform.post(f"/v1/tenants/{stack.credentials['tenant_id']}/api-keys", json={"name": "reads", "scopes": ["memory:read"]})

    async def use(session: ClientSession) -> None:
        assert {tool.name for tool in (await session.list_tools()).tools} == {"search_memory", "get_memory_subgraph"}
        assert (await refused(session, "remember", text="x y z"))["code"] == "insufficient_scope"

    talk(stack, "mia", use, made.json()["secret"])


def test_there_are_no_streams_to_open_and_no_sessions_to_end(stack: Stack) -> None:
    with stack.client() as api:
        for method in ("GET", "DELETE"):
            answer = api.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    with stack.client(None) as nobody:
        assert nobody.post("/mcp", json={}).status_code == 401
