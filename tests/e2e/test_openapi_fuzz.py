"""Requests that schemathesis makes up from the served OpenAPI file, good and bad: the service breaks on none, and answers only what the
file says.

The seed is fixed, so a failure comes again. What a run needs to come past 404 (a conversation with a turn, an entity, ...) is made first.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.local_stack import Stack

pytestmark = pytest.mark.emulator

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
SUBJECT = "ada"
# CPython 3.11 miscounts its recursion depth now and then while hypothesis parses a strategy of its own: no answer of ours.
OWN_FAULT = "AST constructor recursion depth mismatch"


@pytest.fixture
def own(instances: Callable[..., Stack]) -> Stack:
    """An instance that the made-up requests may change as they like."""
    return instances("fuzz")


def things(stack: Stack) -> dict[str, str]:
    """An existing thing for every id that a path names."""

    def made(client: httpx.Client, path: str, body: Any, **query: str) -> Any:
        return client.post(path, json=body, params=query).raise_for_status().json()

    ada = {"external_subject_id": SUBJECT}
    tenant = stack.credentials["tenant_id"]
    with stack.client() as key, stack.client("dashboard_token") as admin:
        conversation = made(key, "/v1/conversations", {"workspace_id": "w", **ada})["id"]
        turn = made(key, f"/v1/conversations/{conversation}/messages", {"content": "My sister lives in Bergen."}, **ada)
        frames = key.get(f"/v1/conversations/{conversation}/context/frames", params=ada).raise_for_status().json()["items"]
        one, other = (made(key, "/v1/memories/entities", {"name": name, "entity_type": "person"}, **ada)["id"] for name in ("Mira", "Olaf"))
        ends = {"source_entity_id": one, "target_entity_id": other, "relation_type": "knows"}
        return {
            "conversation_id": conversation,
            "turn_id": turn["turn_id"],
            "frame_id": frames[0]["id"],
            "entity_id": one,
            "memory_id": other,
            "relation_id": made(key, "/v1/memories/relations", ends, **ada)["id"],
            "base_id": made(admin, "/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"],
            "agent_id": made(admin, "/v1/agents", {"name": "Helper"})["id"],
            "key_id": made(admin, f"/v1/tenants/{tenant}/api-keys", {"name": "Other", "scopes": ["chat"]})["id"],
            "operation_id": admin.delete("/v1/subjects/nobody").raise_for_status().json()["id"],
            "tenant_id": tenant,
            "external_subject": SUBJECT,
        }


def fuzz(stack: Stack, credential: str, folder: Path, parameters: dict[str, str], *arguments: str) -> None:
    """Runs schemathesis with a token. DELETE is left to ids that it finds itself, so that the things stay for the others."""
    known = ", ".join(f"{name} = {json.dumps(value)}" for name, value in parameters.items())
    reads = [f'[[operations]]\ninclude-method = "{method}"\nparameters = {{ {known} }}\n' for method in ("GET", "POST", "PATCH", "PUT")]
    config = folder / "schemathesis.toml"
    config.write_text(f'[parameters]\n"query.external_subject_id" = "{SUBJECT}"\n\n' + "\n".join(reads), encoding="utf-8")
    for seed in (1, 2):
        done = _run(stack, credential, folder, config, seed, *arguments)
        if OWN_FAULT not in done.stdout:
            break
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]


def _run(stack: Stack, credential: str, folder: Path, config: Path, seed: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own arguments
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "--no-color",
            f"--config-file={config}",
            "run",
            f"{stack.base_url}/openapi.json",
            f"--header=Authorization: Bearer {stack.credentials[credential]}",
            f"--checks={','.join(CHECKS)}",
            "--phases=coverage,fuzzing,stateful",
            "--max-examples=4",
            f"--seed={seed}",
            "--workers=2",
            "--request-timeout=60",
            "--continue-on-failure",
            "--no-shrink",
            "--generation-database=:memory:",
            *arguments,
        ],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_made_up_requests_break_nothing_and_get_only_what_the_file_says(own: Stack, tmp_path: Path) -> None:
    found = things(own)
    fuzz(own, "api_key", tmp_path, found)
    fuzz(own, "platform_admin_token", tmp_path, found, "--include-path-regex=^/v1/(tenants|admin|operations)")
