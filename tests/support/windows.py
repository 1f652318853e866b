"""Conversations in a small window, so that a few messages fill it."""

from typing import Any

from tests.support.world import Client, World


def small(aws: World, client: Client, **config: Any) -> str:
    """A conversation in a window of 4,000 tokens."""
    body = {"name": "S", "context_compression_config": {"context_window": 4000, "tail_max_tokens": 300, **config}}
    agent = aws.user(client.caller.tenant_id).post("/v1/agents", body)["id"]
    return client.conversation(agent_id=agent)


def compactions(client: Client, conversation: str) -> list[Any]:
    return client.walk(f"/v1/conversations/{conversation}/compactions")
