"""The OpenAPI file is the contract of clients: one that is generated from it makes the main calls of docs/guide/clients.md."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local_stack import ROOT, Stack

pytestmark = pytest.mark.emulator
CONTRACT = ROOT / "layers" / "core" / "tidemark" / "http" / "openapi.json"
PACKAGE = "tidemark_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the generated package, which can be imported."""
    folder = tmp_path_factory.mktemp("client")
    tools = Path(sys.executable).parent
    command = [str(tools / "openapi-python-client"), "generate", "--path", str(CONTRACT), "--meta", "none", "--output-path", PACKAGE]
    ran = subprocess.run(  # noqa: S603
        [*command, "--config", str(ROOT / "docs/guide/client.yaml"), "--fail-on-warning"],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


class Api:
    """Calls of the generated package, each as `api("conversations", "create_conversation", ...)`."""

    def __init__(self, package: str, stack: Stack) -> None:
        self._package = package
        client: Any = importlib.import_module(package).AuthenticatedClient
        self.client = client(base_url=stack.base_url, token=stack.credentials["api_key"], timeout=60, httpx_args={"trust_env": False})
        self._models = importlib.import_module(f"{package}.models")

    def __call__(self, group: str, operation: str, /, *path: str, **arguments: Any) -> Any:
        module = importlib.import_module(f"{self._package}.api.{group}.{operation}")
        return module.sync(*path, client=self.client, **arguments)

    def model(self, name: str) -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(self._models, name)
        return made


@pytest.fixture
def api(generated: str, stack: Stack) -> Iterator[Api]:
    made = Api(generated, stack)
    with made.client:
        yield made


def test_a_conversation_is_had_compacted_and_recalled(api: Api) -> None:
    conversation = api("conversations", "create_conversation", body=api.model("ConversationBody")(external_subject_id="gen")).id
    own = {"external_subject_id": "gen"}
    turn = api("conversations", "post_turn", conversation, body=api.model("TurnBody")(content="The lantern is copper."), **own)
    assert turn.message.role == "assistant"
    assert turn.metadata.usage.input_tokens > 0
    messages = api("conversations", "list_messages", conversation, **own)
    assert [message.content for message in messages.items] == ["The lantern is copper.", turn.message.content]
    assert messages.next_cursor is None
    compacted = api("conversations", "compact", conversation, body=api.model("CompactBody")(), **own)
    assert (compacted.compacted, compacted.skip_reason) == (False, "nothing_to_compact")
    recalled = api("conversations", "recall", conversation, body=api.model("RecallBody")(query="copper lantern"), **own)
    assert recalled.items[0].id == messages.items[0].id


def test_memory_is_written_searched_changed_and_deleted(api: Api) -> None:
    own = {"external_subject_id": "gen-memory"}
    told = api("memories", "remember", body=api.model("RememberBody")(text="My boat is called Petrel."), **own)
    assert "Petrel" in told.confirmation
    found = api("memories", "search_memories", body=api.model("SearchBody")(query="What is my boat called?"), **own)
    assert "Petrel" in str(found.items[0].entity.to_dict())
    entity_type = api.model("EntityBodyEntityType")("person")
    made = api("memories", "upsert_entity", body=api.model("EntityBody")(name="Ruth", entity_type=entity_type), **own)
    changed = api("memories", "put_entity", made.id, body=api.model("EntityPut")(description="Sister"), **own)
    assert (changed.id, changed.description, changed.version) == (made.id, "Sister", made.version + 1)
    assert api("memories", "get_entity", made.id, **own).entity.description == "Sister"
    assert api("memories", "delete_entity", made.id, **own).deleted == 1
    gone = api("memories", "get_entity", made.id, **own)
    assert (gone.status, gone.code) == (404, "not_found")


def test_refusals_are_problems(api: Api) -> None:
    missing = api("conversations", "get_conversation", "cnv_none", external_subject_id="gen")
    assert type(missing).__name__ == "Problem"
    assert (missing.status, missing.code) == (404, "not_found")
    body = api.model("ConversationBody")(external_subject_id="")
    refused = api("conversations", "create_conversation", body=body)
    assert (refused.code, [one.path for one in refused.errors]) == ("validation_failed", ["/external_subject_id"])
