"""Section B of the reports, what of it needs the store, and attribution through a summary (C47). Each test names its case."""

from typing import Any

from tidemark.clock import iso, now

from tests.support.models import ScriptedModel
from tests.support.world import Client, World


def remember(client: Client, text: str) -> list[Any]:
    found: list[Any] = client.post("/v1/memories/remember", {"text": text})["entities"]
    return found


def entity(client: Client, name: str, **more: Any) -> Any:
    return client.post("/v1/memories/entities", {"name": name, "entity_type": "fact", **more})


def names(answer: Any) -> set[str]:
    return {item["entity"]["name"] for item in answer["items"]}


def test_case_031_a_time_window_holds_for_neighbours_too(aws: World, ada: Client) -> None:
    old = entity(ada, "keel inspection of the harbour boat")
    aws.clock.forward(days=20)
    fresh = entity(ada, "sail inspection of the harbour boat")
    ada.post("/v1/memories/relations", {"source_entity_id": fresh["id"], "target_entity_id": old["id"], "relation_type": "related_to"})
    aws.index()
    wide, narrow = (ada.search("sail inspection of the harbour boat", **window) for window in ({}, {"time_window_days": 5}))
    assert old["id"] in {one["id"] for one in wide["subgraph"]["entities"]}
    assert {one["id"] for one in narrow["subgraph"]["entities"]} == {fresh["id"]}


def test_case_032_a_fact_told_twice_keeps_the_dates_of_both(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    days = ("2024-02-01T10:00:00.000Z", "2024-03-01T10:00:00.000Z")
    for day in days:
        ada.post(
            f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "I work at Acme.", "created_at": day}]}
        )
    aws.learn()
    [fact] = [one for one in ada.memories() if one["entity_type"] == "fact"]
    assert fact["valid_from"] == days[0]
    said_at = {one["id"]: one["created_at"] for one in ada.messages(conversation)}
    assert [said_at[one["message_id"]] for one in fact["provenance"]] == list(days)


def test_case_033_as_of_goes_by_validity_and_not_by_the_last_touch(aws: World, ada: Client) -> None:
    remember(ada, "I live in Rome.")
    aws.clock.forward(days=10)
    between = iso(now())
    aws.clock.forward(days=10)
    remember(ada, "I live in Oslo.")
    aws.clock.forward(days=10)
    after = iso(now())
    aws.clock.forward(days=10)
    [rome] = [one for one in ada.memories() if "Rome" in one["name"] and one["entity_type"] == "fact"]
    ada.put(f"/v1/memories/entities/{rome['id']}", {"description": "a flat by the river"})
    aws.index()
    asked = {moment: names(ada.search("Where do I live?", as_of=moment)) for moment in (between, after)}
    assert any("Rome" in name for name in asked[between])
    assert not any("Rome" in name for name in asked[after])
    assert any("Oslo" in name for name in asked[after])


def test_case_035_what_was_superseded_is_not_found_by_its_own_words(aws: World, ada: Client) -> None:
    remember(ada, "I work at Blue Anchor Shipping.")
    remember(ada, "I work at Halibut Systems.")
    aws.index()
    for query in ("Do I work at Blue Anchor Shipping?", "Blue Anchor Shipping", "Where do I work?"):
        assert not any("Blue Anchor" in name for name in names(ada.search(query)))
    assert any("Halibut" in name for name in names(ada.search("Where do I work?")))


def test_case_037_a_contradicted_relation_is_closed_and_can_come_back(aws: World, ada: Client) -> None:
    [first] = [one for one in remember(ada, "I live in Rome.") if one["entity_type"] == "fact"]
    remember(ada, "I moved to Oslo.")
    path = f"/v1/memories/entities/{first['id']}"
    [closed] = ada.get(path)["outgoing_relations"]
    assert closed["valid_to"] is not None
    graph = ada.get("/v1/memories/graph", entity_ids=first["id"])
    assert closed["id"] not in {one["id"] for one in graph["relations"]}
    ada.post(f"{path}/restore", {"version": 1})
    [open_again] = ada.get(path)["outgoing_relations"]
    assert (open_again["id"], open_again["valid_to"]) == (closed["id"], None)


def test_case_038_a_single_memory_is_edited_ended_and_brought_back(aws: World, ada: Client) -> None:
    made = entity(ada, "berth of the boat", description="C-27", valid_from="2024-01-01T00:00:00Z")
    path = f"/v1/memories/entities/{made['id']}"
    ada.put(path, {"description": "D-4"})
    ended = ada.put(path, {"valid_to": "2024-06-01T00:00:00Z"})
    aws.index()
    assert names(ada.search("berth of the boat")) == set()
    assert names(ada.search("berth of the boat", as_of="2024-03-01T00:00:00Z")) == {"berth of the boat"}
    back = ada.post(f"{path}/restore", {"version": 1})
    assert (back["description"], back["valid_to"], back["version"]) == ("C-27", None, ended["version"] + 1)
    assert names(ada.search("berth of the boat")) == {"berth of the boat"}
    assert [one["action"] for one in ada.walk(f"{path}/history")] == ["created", "updated", "updated", "restored"]


def test_case_047_what_the_assistant_proposed_never_becomes_the_users_by_way_of_a_summary(
    aws: World, model: ScriptedModel, ada: Client
) -> None:
    body = {"name": "S", "enable_memory": True, "context_compression_config": {"context_window": 4000, "tail_max_tokens": 300}}
    agent = aws.user(ada.caller.tenant_id).post("/v1/agents", body)["id"]
    conversation = ada.conversation(agent_id=agent)
    model.default = "I suggest a three-day sailing course in Kiel. " * 12
    model.enqueue("The user decided to take a three-day sailing course in Kiel.", purpose="summary")
    for number in range(10):
        ada.say(conversation, f"{number}: hm, let me think about it a little longer, there is no hurry about any of this. " * 4)
    assert ada.walk(f"/v1/conversations/{conversation}/compactions")
    aws.learn()
    assert not any("Kiel" in str(one) for one in ada.memories())
