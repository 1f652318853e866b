"""Where a memory says that it comes from, of which time it is read, and what a question about the last session finds."""

from typing import Any

import pytest
from tidemark.conversations.store import ConversationStore
from tidemark.storage.table import StaleError

from tests.support.models import ScriptedModel
from tests.support.world import Client, World


def test_a_source_is_a_message_of_the_callers_own_conversation(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    message = ada.say(conversation, "The mast is green.")["message"]["parent_id"]
    sources = {"source_conversation_id": conversation, "source_message_id": message}
    made = ada.post("/v1/memories/entities", {"name": "Mast", "entity_type": "concept", **sources})
    assert (made["source_conversation_id"], made["source_message_id"]) == (conversation, message)
    assert made["provenance"][0]["message_id"] == message


@pytest.mark.parametrize("whose", ["unknown", "another subject's", "another tenant's"])
def test_a_foreign_source_is_a_404_and_stores_nothing(aws: World, ada: Client, whose: str) -> None:
    others = {"another subject's": aws.key(ada.caller.tenant_id, "bob"), "another tenant's": aws.key(aws.tenant(), "ada")}
    conversation = others[whose].conversation() if whose in others else "cnv_01M8Q3GX5641NWJAJCGYR85NPQ"
    body = {"name": "Mast", "entity_type": "concept", "source_conversation_id": conversation}
    assert ada.refused("POST", "/v1/memories/entities", body) == (404, "not_found")
    told = {"text": "The mast is green.", "source_conversation_id": conversation}
    assert ada.refused("POST", "/v1/memories/remember", told) == (404, "not_found")
    assert ada.memories() == []


def test_a_source_message_belongs_to_its_conversation(ada: Client) -> None:
    here, there = ada.conversation(), ada.conversation()
    message = ada.say(there, "The mast is green.")["message"]["id"]
    body: dict[str, Any] = {"name": "Mast", "entity_type": "concept", "source_message_id": message}
    assert ada.refused("POST", "/v1/memories/entities", body) == (422, "validation_failed")
    assert ada.refused("POST", "/v1/memories/entities", {**body, "source_conversation_id": here}) == (404, "not_found")


def test_a_password_under_its_name_is_not_kept(ada: Client) -> None:
    ada.post("/v1/memories/entities", {"name": "WiFi password", "entity_type": "fact", "description": "hunter2"})
    ada.post("/v1/memories/entities", {"name": "Password policy", "entity_type": "fact", "description": "strict"})
    stored = {one["name"]: one["description"] for one in ada.memories()}
    assert stored == {"WiFi password": "[redacted]", "Password policy": "strict"}


def test_an_entity_is_read_as_of_a_time(ada: Client) -> None:
    body = {"name": "Berth C-27", "entity_type": "fact", "valid_from": "2024-01-01T00:00:00Z", "valid_to": "2024-06-01T00:00:00Z"}
    made, boat = (ada.post("/v1/memories/entities", one) for one in (body, {"name": "Alma", "entity_type": "custom"}))
    relation = {"source_entity_id": made["id"], "target_entity_id": boat["id"], "relation_type": "related_to"}
    ada.post("/v1/memories/relations", {**relation, "valid_from": "2024-02-01T00:00:00Z", "valid_to": "2024-03-01T00:00:00Z"})
    path = f"/v1/memories/entities/{made['id']}"
    assert len(ada.get(path, as_of="2024-02-15T00:00:00Z")["outgoing_relations"]) == 1
    assert ada.get(path, as_of="2024-04-15T00:00:00Z")["outgoing_relations"] == []
    assert ada.refused("GET", path, as_of="2024-07-01T00:00:00Z") == (404, "not_found")
    assert ada.get(path)["entity"]["id"] == made["id"]


def bring(client: Client, conversation: str, *said: tuple[str, str]) -> None:
    messages = [{"role": "user", "content": content, "created_at": at} for at, content in said]
    client.post(f"/v1/conversations/{conversation}/import", {"messages": messages})


def test_the_last_session_is_the_newest_sitting_of_the_newest_conversation(aws: World, model: ScriptedModel, ada: Client) -> None:
    old, new = ada.conversation(), ada.conversation()
    bring(ada, old, ("2024-01-01T10:00:00Z", "We painted the hull of the boat green."))
    bring(
        ada, new, ("2024-02-01T10:00:00Z", "We mended the sail of the boat."),
        ("2024-03-01T10:00:00Z", "We greased the winch of the boat."), ("2024-03-01T10:20:00Z", "And the boat got a new anchor."),
    )  # fmt: skip
    aws.index()
    found = ada.search("What did we do with the boat in our last session?", sources=["messages"])
    assert {one["text"] for one in found["messages"]} == {"We greased the winch of the boat.", "And the boat got a new anchor."}
    assert found["time_filter"]["from"] == "2024-03-01T10:00:00.000Z"
    asking = ada.conversation()
    ada.say(asking, "What did we do with the boat in our last session?")
    recalled = model.of("turn")[-1].memory or ""
    assert "winch" in recalled
    assert "hull" not in recalled
    assert "sail" not in recalled


def test_facts_and_watermark_are_one_transaction(aws: World, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I live in Oslo.")
    ada.post(f"/v1/conversations/{conversation}/extract", None)

    def refuse(*_: Any, **__: Any) -> None:
        raise StaleError

    with monkeypatch.context() as broken:
        broken.setattr(ConversationStore, "change", refuse)
        waiting = [body for body, _ in aws.queued()]
        assert aws.deliver(waiting)
    assert ada.memories() == []
    assert aws.deliver(waiting) == []
    assert "Oslo" in str(ada.memories())
    [job] = [one for one in ada.walk("/v1/extractions") if one["trigger"] == "manual"]
    assert (job["state"], job["attempts"]) == ("completed", 2)
