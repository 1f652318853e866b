"""What may be taken away: a person, a tenant, a conversation, with all that was kept of them; and going on after a crash."""

import json
from datetime import timedelta
from typing import Any

import boto3
import pytest
from tidemark.storage import keys, table
from tidemark.storage.leases import lease

from tests.support.crashes import kills
from tests.support.models import HashEmbedder
from tests.support.world import BUCKET, EPHEMERAL, Client, World, use

WORD = "numbat"


@pytest.fixture
def tenant(aws: World) -> str:
    return aws.tenant()


def lived(aws: World, tenant: str, subject: str) -> Client:
    """A subject with a conversation, an explicit memory, an entity and a keyed answer that hold the word."""
    api = aws.key(tenant, subject)
    conversation = api.conversation(title=WORD)
    body = {"content": f"Remember this: my boat is called {WORD}."}
    assert api.send("POST", f"/v1/conversations/{conversation}/messages", body, headers={"Idempotency-Key": f"k-{subject}"}).status == 200
    api.post("/v1/memories/entities", {"name": f"Shed of {WORD}", "entity_type": "location"})
    aws.index()
    return api


def holding(aws: World, word: str) -> list[Any]:
    """Every stored item that still has the word, the audit aside."""
    return [item for item in aws.items() if word in json.dumps(item, default=str) and "#audit" not in item["pk"]]


def test_an_erased_person_is_in_no_item_and_others_stay(aws: World, tenant: str) -> None:
    api, other = lived(aws, tenant, "a/da#1"), lived(aws, tenant, "bo")
    done = aws.user(tenant).delete("/v1/subjects/a%2Fda%231")
    assert done["state"] == "completed"
    assert sum(done["receipt"]["counts"].values()) >= 5
    assert api.memories() == []
    assert api.search(WORD, sources=["memories", "messages"])["items"] == []
    assert {item["pk"].split("#")[1] for item in holding(aws, WORD)} <= {"c", "mem"}
    assert len(other.memories()) >= 2
    assert other.search(WORD)["items"]


def test_an_erasure_that_dies_between_two_deletions_goes_on(aws: World, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(aws, tenant, "ada")
    real, left = table.delete_partition, 1

    def dying(pk: str, prefix: str = "") -> int:
        nonlocal left
        if left == 0:
            raise RuntimeError("killed")
        left -= 1
        return real(pk, prefix)

    monkeypatch.setattr(table, "delete_partition", dying)
    assert aws.user(tenant).send("DELETE", "/v1/subjects/ada").status == 500
    monkeypatch.setattr(table, "delete_partition", real)
    assert aws.user(tenant).delete("/v1/subjects/ada")["state"] == "completed"
    assert holding(aws, WORD) == []


def test_a_stored_answer_does_not_bring_back_what_was_erased(aws: World, tenant: str) -> None:
    api = aws.key(tenant, "ada")
    conversation = api.conversation()
    path, headers = f"/v1/conversations/{conversation}/messages", {"Idempotency-Key": "k1"}
    assert api.send("POST", path, {"content": "hello"}, headers=headers).status == 200
    aws.user(tenant).delete("/v1/subjects/ada")
    assert api.send("POST", path, {"content": "hello"}, headers=headers).status == 404


def test_what_a_person_put_into_a_restricted_base_is_exported_and_erased(aws: World, tenant: str) -> None:
    base = aws.user(tenant).post("/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
    ada, bo = aws.key(tenant, "ada"), aws.key(tenant, "bo")
    ada.say(ada.conversation(knowledge_base_id=base), f"Remember this: the ladder is behind the {WORD}.")
    bo.say(bo.conversation(knowledge_base_id=base), "Remember this: the bucket is behind the boiler.")
    exported = aws.user(tenant).send("GET", "/v1/subjects/ada/export").body
    assert WORD in exported
    assert "boiler" not in exported
    aws.user(tenant).delete("/v1/subjects/ada")
    kept = aws.user(tenant).get(f"/v1/knowledge-bases/{base}/memories")["items"]
    assert kept
    assert WORD not in json.dumps(kept)


def test_a_deleted_tenant_leaves_nothing_and_its_neighbour_everything(aws: World, tenant: str) -> None:
    neighbour = aws.tenant()
    lived(aws, tenant, "ada")
    other = lived(aws, neighbour, "ada")
    done = aws.platform.delete(f"/v1/tenants/{tenant}")
    assert done["state"] == "completed"
    assert [item["pk"] for item in aws.items() if item["pk"].startswith(tenant)] == []
    assert aws.platform.refused("GET", f"/v1/tenants/{tenant}") == (404, "not_found")
    assert other.search(WORD)["items"]


def test_a_long_erasure_goes_on_in_the_queue(aws: World, tenant: str) -> None:
    lived(aws, tenant, "ada")
    aws.context.left = 0
    answer = aws.user(tenant).send("DELETE", "/v1/subjects/ada")
    assert (answer.status, answer.body["state"]) == (202, "running")
    aws.context.left = 100_000
    assert aws.deliver() == []
    done = aws.user(tenant).get(f"/v1/operations/{answer.body['id']}")
    assert done["state"] == "completed"
    assert holding(aws, WORD) == []


def left_of(aws: World, tenant: str) -> list[str]:
    """Keys of all that the tables and the bucket still hold of a tenant."""
    records: list[dict[str, Any]] = boto3.resource("dynamodb").Table(EPHEMERAL).scan()["Items"]
    objects = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=tenant).get("Contents", [])
    return [
        *(item["pk"] for item in aws.items() if item["pk"].startswith(tenant)),
        *(record["id"] for record in records if record["id"].startswith("http#")),
        *(found["Key"] for found in objects),
    ]


def test_a_deleted_tenant_takes_keyed_answers_and_the_memory_of_deleted_bases_along(aws: World, tenant: str) -> None:
    admin, ada = aws.user(tenant), aws.key(tenant, "ada")
    headers = {"Idempotency-Key": "k1"}
    assert admin.send("POST", "/v1/agents", {"name": "A", "system_prompt": WORD}, headers=headers).status == 201
    bo = aws.key(tenant, "bo")  # says nothing, and remembers nothing
    assert (
        bo.send("POST", "/v1/conversations", {"external_subject_id": "bo", "title": WORD}, headers={"Idempotency-Key": "k2"}).status == 201
    )
    base = admin.post("/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
    ada.say(ada.conversation(knowledge_base_id=base), f"Remember this: the ladder is behind the {WORD}. " + "x, " * 12_000)
    aws.platform.delete(f"/v1/tenants/{tenant}")
    assert left_of(aws, tenant) == []


def test_a_deleted_base_takes_its_memory_along(aws: World, tenant: str) -> None:
    admin, ada = aws.user(tenant), aws.key(tenant, "ada")
    base = admin.post("/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
    api = aws.key(tenant, "ada", knowledge_base_id=base)
    api.post("/v1/memories/remember", {"text": f"The ladder is behind the {WORD}."})
    ada.post("/v1/memories/remember", {"text": "My boat is called Echidna."})
    aws.index()
    path = f"/v1/knowledge-bases/{base}"
    stale = admin.send("DELETE", path, headers={"If-Match": '"other"'})
    assert (stale.status, WORD in str(api.memories())) == (412, True)
    assert admin.send("DELETE", path).status == 204
    assert holding(aws, WORD) == []
    assert "Echidna" in str(ada.memories())


def test_whoever_dies_in_an_erasure_the_queue_ends_it(aws: World, tenant: str) -> None:
    use(aws.patch, "embedder", HashEmbedder())
    admin = aws.user(tenant)

    def erase() -> None:
        admin.delete("/v1/subjects/ada")

    def states() -> list[str]:
        return [json.loads(item["data"])["state"] for item in aws.items() if item["pk"].endswith("#ops")]

    def recover(number: int) -> None:
        begun = "running" in states()
        assert aws.deliver() == []
        assert set(states()) <= {"completed"}
        if not begun:  # only then a second request is needed; it may also have been done
            admin.delete("/v1/subjects/ada")
        assert holding(aws, WORD) == []
        lived(aws, tenant, "ada")
        aws.queued()

    lived(aws, tenant, "ada")
    aws.queued()
    assert kills(aws.patch, erase, recover, most=80) >= 10


def test_an_erasure_waits_for_whoever_still_learns(aws: World, tenant: str) -> None:
    ada, admin = aws.key(tenant, "ada"), aws.user(tenant)
    conversation = ada.conversation()
    ada.say(conversation, f"My boat is called {WORD}.")
    with lease(keys.extraction_lease(tenant, conversation), timedelta(minutes=6)):
        answer = admin.send("DELETE", "/v1/subjects/ada")
        assert (answer.status, answer.body["state"]) == (202, "running")
        ada_again = ada.send("POST", f"/v1/conversations/{conversation}/messages", {"content": "more"})
        assert ada_again.status == 404
    aws.deliver()
    assert admin.get(f"/v1/operations/{answer.body['id']}")["state"] == "completed"
    assert holding(aws, WORD) == []


def test_messages_that_still_wait_for_an_erased_person_do_nothing(aws: World, tenant: str) -> None:
    ada = aws.key(tenant, "ada")
    conversation = ada.conversation()
    ada.say(conversation, f"My boat is called {WORD}.")
    ada.post(f"/v1/conversations/{conversation}/extract", None)
    waiting = [body for body, _ in aws.queued()]
    assert len(waiting) >= 2
    aws.user(tenant).delete("/v1/subjects/ada")
    before = sorted((item["pk"], item["sk"]) for item in aws.items())
    assert aws.deliver(waiting) == []
    aws.index()
    assert sorted((item["pk"], item["sk"]) for item in aws.items()) == before
    assert ada.search(WORD, sources=["memories", "messages"])["items"] == []


def test_a_deleted_conversation_takes_its_stored_answers_along(aws: World, tenant: str) -> None:
    api = aws.key(tenant, "ada")
    conversation = api.conversation()
    body = {"messages": [{"role": "user", "content": WORD}]}
    api.send("POST", f"/v1/conversations/{conversation}/import", body, headers={"Idempotency-Key": "k1"})
    api.delete(f"/v1/conversations/{conversation}")
    assert holding(aws, WORD) == []


def test_nobody_is_exported_or_erased_without_a_name(aws: World, tenant: str) -> None:
    admin = aws.user(tenant)
    assert admin.refused("DELETE", "/v1/subjects")[0] == 422
    assert admin.refused("GET", "/v1/subjects/export")[0] == 422
    assert aws.user(tenant, "member").refused("DELETE", "/v1/subjects/ada")[0] == 403
