"""A process that dies between any two of its writes: what was accepted is there, nothing is doubled, nothing half done."""

from collections import Counter
from typing import Any

import boto3
import pytest

from tests.support.crashes import kills
from tests.support.models import HashEmbedder, ScriptedModel
from tests.support.world import BUCKET, Client, World, use


@pytest.fixture
def ada(aws: World) -> Client:
    use(aws.patch, "model", ScriptedModel())
    use(aws.patch, "embedder", HashEmbedder())
    return aws.key(aws.tenant(), "ada")


def whole(client: Client, conversation: str) -> list[Any]:
    """The messages of a conversation, after checking that its parts agree."""
    state = client.get(f"/v1/conversations/{conversation}")
    messages = client.messages(conversation)
    assert state["message_count"] == len(client.messages(conversation, branch="all"))
    assert state["head_message_id"] == (messages[-1]["id"] if messages else None)
    assert [one["parent_id"] for one in messages] == [None, *[one["id"] for one in messages[:-1]]][: len(messages)]
    return messages


def test_a_turn(aws: World, ada: Client) -> None:
    conversations: list[str] = []
    long = "x" * 40_000  # goes to the bucket

    def turn() -> None:
        conversations.append(ada.conversation())
        ada.say(conversations[-1], long)

    def recover(number: int) -> None:
        if not conversations or ada.send("GET", f"/v1/conversations/{conversations[-1]}").status == 404:
            return  # killed before the conversation was there
        conversation = conversations[-1]
        before = whole(ada, conversation)
        assert [one["content"] for one in before] in ([], [long, "Understood."])
        aws.clock.forward(minutes=1)
        turns = [item["sk"].removeprefix("t#") for item in aws.items() if item["sk"].startswith("t#") and conversation in item["pk"]]
        for found in turns:
            told = ada.get(f"/v1/conversations/{conversation}/turns/{found}")
            assert told["state"] == ("completed" if before else "failed")
            assert (told["answer"] is None) == (not before)
        if not before:
            ada.say(conversation, long)
        assert [one["content"] for one in whole(ada, conversation)] == [long, "Understood."]

    assert kills(aws.patch, turn, recover) >= 4


def test_a_turn_with_a_key_is_never_doubled(aws: World, ada: Client) -> None:
    conversations = [ada.conversation()]

    def turn() -> None:
        path = f"/v1/conversations/{conversations[-1]}/messages"
        answer = ada.send("POST", path, {"content": "hello"}, headers={"Idempotency-Key": f"k{len(conversations)}"})
        assert answer.status == 200, answer

    aws.context.left = 1  # what runs is soon taken for dead

    def recover(number: int) -> None:
        turn()
        assert [one["content"] for one in whole(ada, conversations[-1])] == ["hello", "Understood."], number
        conversations.append(ada.conversation())

    assert kills(aws.patch, turn, recover) >= 4


def test_an_import(aws: World, ada: Client) -> None:
    given = [{"role": "user", "content": f"{number} " + "y" * 40_000 * (number % 20 == 0)} for number in range(100)]
    conversations = [ada.conversation()]

    def bring() -> None:
        ada.post(f"/v1/conversations/{conversations[-1]}/import", {"messages": given})

    def recover(number: int) -> None:
        stored = whole(ada, conversations[-1])
        assert len(stored) in (0, 100)
        if not stored:
            bring()
        assert [one["content"] for one in whole(ada, conversations[-1])] == [one["content"] for one in given]
        conversations.append(ada.conversation())

    assert kills(aws.patch, bring, recover) >= 6


def memories_of(client: Client) -> Counter[str]:
    return Counter(one["name"] for one in client.memories())


def test_an_explicit_request(aws: World, ada: Client) -> None:
    words = "Remember this: my sister Ingrid lives in Bergen."
    people: list[Client] = [ada]
    expected: list[Counter[str]] = []

    def ask() -> None:
        me = people[-1]
        me.say(me.conversation(), words)

    def recover(number: int) -> None:
        ask()
        aws.index()
        expected.append(memories_of(people[-1]))
        answer = people[-1].say(people[-1].conversation(), "Where does my sister live?")
        assert answer["metadata"]["memory_used"] is True
        people.append(aws.key(ada.caller.tenant_id, f"person {number}"))

    assert kills(aws.patch, ask, recover) >= 4
    expected.append(memories_of(people[-1]))
    assert len({frozenset(one.items()) for one in expected}) == 1
    assert max(expected[0].values()) == 1


def test_extraction(aws: World, ada: Client) -> None:
    said = ("I work at Acme.", "I live in Bergen.", "My sister Ingrid lives in Oslo.")
    people: list[Client] = [ada]
    learned: list[Counter[str]] = []
    waiting: list[str] = []

    def prepare() -> None:
        conversation = people[-1].conversation()
        for words in said:
            people[-1].say(conversation, words)
        aws.clock.forward(hours=1)
        waiting[:] = [wake.model_dump_json() for wake, _ in aws.wakes()][-1:]

    prepare()

    def learn() -> None:
        assert aws.deliver(waiting) == []

    def recover(number: int) -> None:
        aws.clock.forward(minutes=15)  # the lease of the dead, and the queue's visibility
        learn()
        aws.queued()
        assert aws.invoke("sweeper", {})["woken"] == 0
        aws.index()
        learned.append(memories_of(people[-1]))
        assert {one["version"] for one in people[-1].memories() if one["entity_type"] != "person"} == {1}
        assert {job["state"] for job in people[-1].walk("/v1/extractions")} <= {"completed", "running", "failed", "skipped"}
        people.append(aws.key(ada.caller.tenant_id, f"person {number}"))
        prepare()

    assert kills(aws.patch, learn, recover) >= 5
    assert len({frozenset(one.items()) for one in learned}) == 1
    assert max(learned[0].values()) == 1
    assert {word for word in ("Acme", "Bergen", "Oslo") if word in str(learned[0])} == {"Acme", "Bergen", "Oslo"}


def test_deleting_a_conversation(aws: World, ada: Client) -> None:
    def filled() -> str:
        conversation = ada.conversation()
        ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "z" * 40_000}]})
        ada.say(conversation, "hello")
        return conversation

    conversations = [filled()]

    def erase() -> None:
        assert ada.send("DELETE", f"/v1/conversations/{conversations[-1]}").status == 204

    def recover(number: int) -> None:
        conversation = conversations[-1]
        status = ada.send("GET", f"/v1/conversations/{conversation}/messages").status
        if status == 200:  # killed before it began
            assert len(whole(ada, conversation)) == 3
        assert ada.send("DELETE", f"/v1/conversations/{conversation}").status in (204, 404)
        assert [item["sk"] for item in aws.items() if conversation in item["pk"]] == []
        keys = [one["Key"] for one in boto3.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])]
        assert not [key for key in keys if conversation in key]
        conversations.append(filled())

    assert kills(aws.patch, erase, recover) >= 4


def test_a_compaction(aws: World, ada: Client) -> None:
    admin = aws.user(ada.caller.tenant_id)
    agent = admin.post("/v1/agents", {"name": "S", "context_compression_config": {"context_window": 4000, "tail_max_tokens": 200}})["id"]

    def filled() -> str:
        conversation = ada.conversation(agent_id=agent)
        given = [{"role": "user", "content": f"Point {number} about the harbour and its long pier"} for number in range(60)]
        ada.post(f"/v1/conversations/{conversation}/import", {"messages": given})
        return conversation

    conversations = [filled()]

    def compact() -> Any:
        return ada.post(f"/v1/conversations/{conversations[-1]}/compact", {})

    def recover(number: int) -> None:
        conversation = conversations[-1]
        aws.clock.forward(minutes=15)
        assert len(whole(ada, conversation)) == 60
        done = compact()
        assert done["compacted"] is True or done["skip_reason"] == "nothing_to_compact"
        assert len(ada.walk(f"/v1/conversations/{conversation}/compactions")) == 1
        conversations.append(filled())

    assert kills(aws.patch, compact, recover) >= 2


def test_an_entity_s_life(aws: World, ada: Client) -> None:
    number = 0

    def live() -> None:
        hub = ada.post("/v1/memories/entities", {"name": f"hub {number}", "entity_type": "concept"})["id"]
        rim = ada.post("/v1/memories/entities", {"name": f"rim {number}", "entity_type": "concept"})["id"]
        ada.post("/v1/memories/relations", {"source_entity_id": hub, "target_entity_id": rim, "relation_type": "part_of"})
        ada.delete(f"/v1/memories/entities/{hub}")
        ada.post(f"/v1/memories/entities/{hub}/restore", {"version": 1})

    def recover(_: int) -> None:
        nonlocal number
        living = {one["id"]: one["name"] for one in ada.memories()}
        assert max(Counter(living.values()).values(), default=1) == 1
        for relation in ada.walk("/v1/memories/relations"):
            assert {relation["source_entity_id"], relation["target_entity_id"]} <= set(living)
        live()
        mine = [name for name in living.values() if name.endswith(f" {number}")]
        assert len(mine) <= 2
        assert len([one for one in ada.memories(q=f" {number}") if one["name"].endswith(f" {number}")]) == 2
        number += 1

    assert kills(aws.patch, live, recover) >= 5
