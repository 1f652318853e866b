"""Durable memory through its handlers: scopes, entities, relations, graph, history, search, forgetting."""

from typing import Any

import pytest

from tests.support.world import Client, World


def entity(client: Client, name: str, entity_type: str = "concept", **more: Any) -> Any:
    return client.post("/v1/memories/entities", {"name": name, "entity_type": entity_type, **more})


def relate(client: Client, source: Any, target: Any, relation_type: str = "related_to", **more: Any) -> Any:
    body = {"source_entity_id": source["id"], "target_entity_id": target["id"], "relation_type": relation_type, **more}
    return client.post("/v1/memories/relations", body)


# AutoSage's table
FACT = "Remember this: the mast is nineteen metres tall."
QUESTION = "How tall is the mast?"


@pytest.fixture
def callers(aws: World) -> dict[str, Client]:
    tenant = aws.tenant()
    admin = aws.user(tenant)
    restricted = admin.post("/v1/knowledge-bases", {"name": "R", "kbMemoryMode": "kb_restricted"})["id"]
    shared = admin.post("/v1/knowledge-bases", {"name": "S", "kbMemoryMode": "subject"})["id"]
    closed = admin.post("/v1/knowledge-bases", {"name": "D", "kbMemoryMode": "disabled"})["id"]
    return {
        "dashboard": admin,
        "subject": aws.key(tenant, "ada"),
        "other subject": aws.key(tenant, "bob"),
        "no subject": aws.key(tenant),
        "restricted": aws.key(tenant, "ada", knowledge_base_id=restricted),
        "restricted, other subject": aws.key(tenant, "bob", knowledge_base_id=restricted),
        "restricted, no subject": aws.key(tenant, knowledge_base_id=restricted),
        "restricted, dashboard": aws.user(tenant, knowledge_base_id=restricted),
        "base of subjects": aws.key(tenant, "ada", knowledge_base_id=shared),
        "base without memory": aws.key(tenant, "ada", knowledge_base_id=closed),
        "other tenant": aws.user(aws.tenant()),
    }


RESTRICTED = {"restricted", "restricted, other subject", "restricted, no subject", "restricted, dashboard"}
SAME_SUBJECT = {"subject", "base of subjects"}


@pytest.mark.parametrize(
    ("teller", "recalling"),
    [
        ("dashboard", {"dashboard"}),
        ("subject", SAME_SUBJECT),
        ("base of subjects", SAME_SUBJECT),
        ("restricted", RESTRICTED),
        ("restricted, no subject", RESTRICTED),
        ("restricted, dashboard", RESTRICTED),
        ("no subject", set()),
        ("base without memory", set()),
    ],
)
def test_who_recalls_what_somebody_said(callers: dict[str, Client], teller: str, recalling: set[str]) -> None:
    def conversation(client: Client) -> str:
        base = client.query.get("knowledge_base_id")
        return client.conversation(**({"knowledge_base_id": base} if base else {}))

    told = callers[teller].say(conversation(callers[teller]), FACT)
    assert (told["metadata"]["finish_reason"] == "memory_confirmation") == bool(recalling)
    used = {name for name, client in callers.items() if client.say(conversation(client), QUESTION)["metadata"]["memory_used"]}
    assert used == recalling


def test_management_reads_cover_the_tenant_and_all_subjects_but_no_restricted_base(callers: dict[str, Client]) -> None:
    for name in ("dashboard", "subject", "other subject", "restricted"):
        entity(callers[name], f"said by {name}")
    admin, tenant = callers["dashboard"], callers["dashboard"].caller.tenant_id
    expected = {"said by dashboard", "said by subject", "said by other subject"}
    assert {one["name"] for one in admin.memories()} == expected
    assert {one["name"] for one in admin.get(f"/v1/tenants/{tenant}/memories")["items"]} == expected
    base = callers["restricted"].query["knowledge_base_id"]
    assert [one["name"] for one in admin.get(f"/v1/knowledge-bases/{base}/memories")["items"]] == ["said by restricted"]
    assert [one["name"] for one in callers["subject"].memories()] == ["said by subject"]


@pytest.mark.parametrize("caller", ["no subject", "base without memory"])
def test_without_a_scope_writes_are_409_and_reads_empty(callers: dict[str, Client], caller: str) -> None:
    client = callers[caller]
    known = entity(callers["subject"], "tea")["id"]
    assert client.memories() == []
    assert client.search("tea")["abstained"] is True
    assert client.get("/v1/memories/graph") == {"entities": [], "relations": [], "truncated": False}
    assert client.refused("GET", f"/v1/memories/entities/{known}") == (404, "not_found")
    for method, path, body in (
        ("POST", "/v1/memories/entities", {"name": "x", "entity_type": "fact"}),
        ("DELETE", f"/v1/memories/entities/{known}", None),
        ("POST", "/v1/memories/remember", {"text": "I like tea"}),
        ("POST", "/v1/memories/forget", {"query": "tea"}),
    ):
        assert client.refused(method, path, body) == (409, "memory_scope_unavailable")


@pytest.mark.parametrize(
    ("settings", "confirmed"), [({"mode": "disabled"}, False), ({"retention": "none"}, False), ({"retention": "explicit_only"}, True)]
)
def test_settings_decide_what_is_stored(aws: World, settings: dict[str, str], confirmed: bool) -> None:
    ada = aws.key(aws.tenant(**settings), "ada")
    told = ada.say(ada.conversation(), FACT)
    assert (told["metadata"]["finish_reason"] == "memory_confirmation") == confirmed
    ada.say(ada.conversation(), "I work at Acme.")
    aws.learn()
    assert all("Acme" not in one["name"] for one in ada.memories())


# one entity
def test_an_upsert_merges_by_folded_name_and_type(ada: Client) -> None:
    first = entity(ada, "Green Tea", description="loose", properties={"a": 1})
    again = ada.send(
        "POST",
        "/v1/memories/entities",
        {"name": "ｇｒｅｅｎ  tea", "entity_type": "concept", "description": "organic", "properties": {"b": 2}},
    )
    assert (again.status, again.body["id"], again.body["version"]) == (200, first["id"], 2)
    assert again.body["description"] == "loose\norganic"
    assert again.body["properties"] == {"a": 1, "b": 2}
    assert entity(ada, "Green Tea", "preference")["id"] != first["id"]
    assert entity(ada, "Green Teas")["id"] != first["id"]


def test_a_change_follows_the_version(ada: Client) -> None:
    path = f"/v1/memories/entities/{entity(ada, 'tea', description='a')['id']}"
    tag = ada.send("GET", path).headers["etag"]
    changed = ada.send("PUT", path, {"description": "b"}, headers={"If-Match": tag})
    assert (changed.status, changed.body["description"], changed.headers["etag"] != tag) == (200, "b", True)
    assert ada.send("PUT", path, {"description": "c"}, headers={"If-Match": tag}).code == "precondition_failed"
    assert ada.send("DELETE", path, headers={"If-Match": tag}).code == "precondition_failed"


def test_history_tells_every_change_and_brings_versions_back(ada: Client) -> None:
    made = entity(ada, "tea", description="a")
    path = f"/v1/memories/entities/{made['id']}"
    ada.put(path, {"description": "b", "properties": {"k": 1}})
    ada.delete(path)
    assert ada.refused("GET", path) == (404, "not_found")
    told = ada.walk(f"{path}/history", limit="1")
    assert [one["action"] for one in told] == ["created", "updated", "deleted"]
    assert {one["actor"]["id"] for one in told} == {ada.caller.id}
    assert {"field": "description", "old": "a", "new": "b"} in told[1]["changes"]
    assert ada.refused("POST", f"{path}/restore", {"version": 9}) == (422, "version_not_found")
    back = ada.post(f"{path}/restore", {"version": 1})
    assert (back["description"], back["properties"], back["version"]) == ("a", {}, 4)
    assert [one["name"] for one in ada.memories()] == ["tea"]
    assert ada.walk(f"{path}/history")[-1]["action"] == "restored"


def test_a_taken_name_is_not_restored_over_its_new_holder(ada: Client) -> None:
    made = entity(ada, "tea")
    ada.delete(f"/v1/memories/entities/{made['id']}")
    entity(ada, "TEA")
    assert ada.refused("POST", f"/v1/memories/entities/{made['id']}/restore", {"version": 1}) == (409, "name_taken")


def test_deleting_takes_relations_along_and_restoring_brings_them_back(ada: Client) -> None:
    hub, left, right = (entity(ada, name) for name in ("hub", "left", "right"))
    relate(ada, hub, left)
    relate(ada, right, hub)
    relate(ada, left, right)
    gone = ada.delete(f"/v1/memories/entities/{hub['id']}")
    assert gone == {"deleted": 1, "relations_deleted": 2}
    assert len(ada.walk("/v1/memories/relations")) == 1
    assert ada.get(f"/v1/memories/entities/{left['id']}")["incoming_relations"] == []
    ada.post(f"/v1/memories/entities/{hub['id']}/restore", {"version": 1})
    view = ada.get(f"/v1/memories/entities/{hub['id']}")
    assert [len(view["outgoing_relations"]), len(view["incoming_relations"])] == [1, 1]


def test_a_batch_counts_what_it_deletes_and_names_what_it_does_not_know(ada: Client) -> None:
    one, other = entity(ada, "one"), entity(ada, "other")
    relate(ada, one, other)
    body = {"ids": [one["id"], other["id"], one["id"], "ent_x"]}
    expected = {"deleted": 2, "relations_deleted": 1, "not_found": ["ent_x"]}
    assert ada.post("/v1/memories/entities/batch-delete", body | {"dry_run": True}) == expected
    assert len(ada.memories()) == 2
    assert ada.post("/v1/memories/entities/batch-delete", body) == expected
    assert ada.memories() == []


def test_expiry_holds_for_every_read(aws: World, ada: Client) -> None:
    admin = aws.user(ada.caller.tenant_id, external_subject_id="ada")
    soon = "2026-01-01T00:00:00Z"
    made = entity(ada, "lunch voucher", expires_at="9999-12-31T23:59:59Z")  # the last second there is
    other = entity(ada, "canteen")
    relate(ada, made, other)
    aws.index()
    path = f"/v1/memories/entities/{made['id']}"
    ada.put(path, {"expires_at": soon})
    assert ada.refused("GET", path) == (404, "not_found")
    assert [one["name"] for one in ada.memories()] == ["canteen"]
    assert ada.get("/v1/memories/graph")["relations"] == []
    assert ada.get(f"/v1/memories/entities/{other['id']}")["incoming_relations"] == []
    assert all(item["entity"]["id"] != made["id"] for item in ada.search("lunch voucher")["items"])
    reader = aws.key(ada.caller.tenant_id, "ada", scopes=["memory:read"])
    assert reader.refused("GET", path, include_expired="true") == (404, "not_found")
    assert reader.refused("GET", f"{path}/history") == (404, "not_found")
    writer = aws.key(ada.caller.tenant_id, "ada", scopes=["memory:write"])
    assert writer.refused("POST", f"{path}/restore", {"version": 1}) == (404, "not_found")
    assert admin.get(path, include_expired="true")["entity"]["id"] == made["id"]
    admin.put(path, {"expires_at": None})
    assert ada.get(path)["entity"]["expires_at"] is None


# relations and graph
def test_a_relation_is_stored_once_and_needs_ends_of_its_scope(aws: World, ada: Client) -> None:
    one, other = entity(ada, "one"), entity(ada, "other")
    first = relate(ada, one, other, description="first")
    again = ada.send(
        "POST", "/v1/memories/relations", {"source_entity_id": one["id"], "target_entity_id": other["id"], "relation_type": "related_to"}
    )
    assert (again.status, again.body["id"], again.body["description"]) == (200, first["id"], "first")
    assert relate(ada, other, one)["id"] != first["id"]
    foreign = entity(aws.key(ada.caller.tenant_id, "bob"), "bob's")
    for end in (foreign["id"], "ent_x", "ent_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        body = {"source_entity_id": one["id"], "target_entity_id": end, "relation_type": "knows"}
        assert ada.refused("POST", "/v1/memories/relations", body) == (422, "entity_not_found")
    assert ada.delete(f"/v1/memories/relations/{first['id']}") == {"deleted": 0, "relations_deleted": 1}
    assert ada.refused("DELETE", f"/v1/memories/relations/{first['id']}") == (404, "not_found")


def test_the_graph_is_walked_from_seeds_at_a_time(ada: Client) -> None:
    a, b, c = (entity(ada, name) for name in "abc")
    relate(ada, a, b, "knows", valid_to="2020-01-01T00:00:00Z")
    relate(ada, b, c, "part_of")

    def names(**query: Any) -> set[str]:
        return {one["name"] for one in ada.get("/v1/memories/graph", **query)["entities"]}

    assert names(entity_ids=a["id"], max_depth="3") == {"a"}
    assert names(entity_ids=a["id"], max_depth="2", as_of="2019-01-01T00:00:00Z") == {"a", "b", "c"}
    assert names(entity_ids=[a["id"], b["id"]], direction="outgoing") == {"a", "b", "c"}
    assert names() == {"a", "b", "c"}
    assert ada.refused("GET", "/v1/memories/graph", entity_ids="ent_x") == (404, "not_found")
    assert ada.refused("GET", "/v1/memories/graph", entity_ids=[a["id"]] * 6) == (422, "validation_failed")


# search and forgetting
def test_a_deleted_statement_leaves_no_trace_at_the_names_in_it(ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "My dentist is Dr Quillfeather."})
    assert ada.search("Who is my dentist?")["items"] != []
    ada.post("/v1/memories/forget", {"query": "my dentist", "dry_run": False})
    assert ada.search("Who is my dentist?")["items"] == []
    ada.post("/v1/memories/remember", {"text": "My brother Tom works at Siemens."})
    known = {one["name"]: one["id"] for one in ada.memories()}
    statement = f"/v1/memories/entities/{known['Tom works at Siemens']}"
    told = {"works_at"} & {one["relation_type"] for one in ada.walk("/v1/memories/relations")}
    ada.delete(statement)
    views = [
        ada.walk("/v1/memories/relations"),
        ada.get("/v1/memories/graph")["relations"],
        ada.get(f"/v1/memories/entities/{known['Tom']}")["outgoing_relations"],
        ada.search("Who is Tom?")["subgraph"]["relations"],
    ]
    assert told == {"works_at"}
    assert [one for view in views for one in view if one["relation_type"] == "works_at"] == []
    ada.post(f"{statement}/restore", {"version": 1})
    assert [one["relation_type"] for one in ada.get(f"/v1/memories/entities/{known['Tom']}")["outgoing_relations"]] == ["works_at"]


def test_what_is_remembered_is_found_at_once_and_forgotten_at_once(ada: Client) -> None:
    remembered = ada.post("/v1/memories/remember", {"text": "My door token is SMOKE-1."})
    assert remembered["confirmation"]
    [item, *_] = ada.search("SMOKE-1")["items"]
    assert "SMOKE-1" in str(item["entity"])
    told = ada.post("/v1/memories/forget", {"query": "SMOKE-1"})
    assert (told["dry_run"], told["deleted"]) == (True, 0)
    assert ada.memories() != []
    done = ada.post("/v1/memories/forget", {"query": "SMOKE-1", "dry_run": False})
    assert done["deleted"] == len(done["candidates"]) == len(told["candidates"])
    assert ada.search("SMOKE-1")["items"] == []


def test_a_closed_fact_is_not_found_but_is_as_of_its_time(aws: World, ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "I live in Rome."})
    ada.post("/v1/memories/remember", {"text": "I live in Oslo."})
    aws.index()
    current = [item["entity"]["name"] for item in ada.search("Where do I live?")["items"]]
    assert any("Oslo" in name for name in current)
    assert not any("Rome" in name for name in current)
    listed = {one["name"]: one["valid_to"] for one in ada.memories(entity_type="fact")}
    assert [bool(end) for name, end in listed.items() if "Rome" in name] == [True]


def test_a_search_counts_what_it_answers(ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "My sister lives in Bergen."})
    [found] = [item["entity"] for item in ada.search("Where does my sister live?")["items"]][:1]
    again = ada.get(f"/v1/memories/entities/{found['id']}")["entity"]
    assert (again["access_count"], again["version"]) == (found["access_count"] + 1, found["version"])
    assert again["last_accessed_at"] is not None


def test_a_nonsense_query_abstains(ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "My sister lives in Bergen."})
    assert ada.search("zzqqxx")["abstained"] is True


def test_messages_are_searched_with_their_source(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "The mast is nineteen metres tall.")
    ada.say(conversation, "The hull is painted green.")
    aws.index()
    found = ada.search("How tall is the mast?", sources=["messages"])
    assert "nineteen" in found["messages"][0]["text"]
    assert found["messages"][0]["conversation_id"] == conversation
    assert found["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "query"),
    [
        ("POST", "/v1/memories/search", {"query": ""}, {}),
        ("POST", "/v1/memories/search", {"query": "  "}, {}),
        ("POST", "/v1/memories/search", {"query": "x", "top_k": 51}, {}),
        ("POST", "/v1/memories/search", {"query": "x", "top_k": "5"}, {}),
        ("POST", "/v1/memories/search", {"query": "x", "external_subject_id": "bob"}, {}),
        ("POST", "/v1/memories/entities", {"name": "x", "entity_type": "fact", "scope": {"kind": "tenant"}}, {}),
        ("GET", "/v1/memories/entities", None, {"entity_type": "animal"}),
        ("GET", "/v1/memories/entities", None, {"page_size": "101"}),
        ("GET", "/v1/memories/entities", None, {"unknown": "1"}),
        ("GET", "/v1/memories/entities", None, {"q": ["a", "b"]}),
        ("GET", "/v1/memories/entities", None, {"external_subject_id": ""}),
        ("GET", "/v1/memories/entities", None, {"external_subject_id": ["ada", "bob"]}),
        ("GET", "/v1/memories/graph", None, {"max_depth": "4"}),
        ("POST", "/v1/memories/remember", {"text": ""}, {}),
    ],
)
def test_bad_input_is_a_422(ada: Client, method: str, path: str, body: Any, query: dict[str, Any]) -> None:
    answer = ada.send(method, path, body, **query)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.body["errors"]


# Credentials
SK, AKIA = "sk-proj-abcdEFGH1234567890abcdEFGH1234", "AKIAIOSFODNN7EXAMPLE"
HOT: dict[str, Any] = {
    "description": f"deploy key is {SK}",
    "properties": {"password": "hunter2xyz", "k": AKIA, "deep": [{"note": f"use {AKIA}", "apiKey": "q1w2e3"}]},
}
HIDDEN = {"password": "[redacted]", "k": "[redacted]", "deep": [{"note": "use [redacted]", "apiKey": "[redacted]"}]}


def test_what_applications_write_is_stored_without_credentials(ada: Client) -> None:
    made = entity(ada, "Deploy", **HOT)
    assert (made["description"], made["properties"]) == ("deploy key is [redacted]", HIDDEN)
    merged = entity(ada, "Deploy", description=f"again {AKIA}", properties={"token": "t0k3nvalue"})
    assert (merged["description"], merged["properties"]) == (
        "deploy key is [redacted]\nagain [redacted]",
        {**HIDDEN, "token": "[redacted]"},
    )
    put = ada.put(f"/v1/memories/entities/{made['id']}", HOT)
    assert (put["description"], put["properties"]) == ("deploy key is [redacted]", {**HIDDEN, "token": "[redacted]"})
    named = entity(ada, f"Key {AKIA}")
    assert (named["name"], named["aliases"]) == ("Key [redacted]", [])
    relation = relate(ada, made, named, **HOT)
    assert (relation["description"], relation["properties"]) == ("deploy key is [redacted]", HIDDEN)
    stored = str([ada.get("/v1/memories/graph"), ada.get(f"/v1/memories/entities/{made['id']}/history")])
    assert not any(secret in stored for secret in (SK, AKIA, "hunter2xyz", "q1w2e3", "t0k3nvalue"))


def test_what_is_remembered_is_stored_without_credentials(ada: Client) -> None:
    aws = f"AWS secret {AKIA} / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    text = f"My passphrase is correct horse battery staple. {aws}. The deploy key is {SK}."
    stored = str(ada.post("/v1/memories/remember", {"text": text}))
    assert not any(secret in stored for secret in (SK, AKIA, "wJalrX", "battery"))
