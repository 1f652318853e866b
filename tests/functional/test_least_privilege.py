"""Every function may do what it does at AWS, by the policies of template.yaml. moto asks nobody, AWS does."""

import pytest

from tests.support import events
from tests.support.models import HashEmbedder
from tests.support.permissions import Calls, grants, recorded
from tests.support.world import World, use

LONG = "some tea, " * 4000  # goes to the bucket


def live(aws: World) -> None:
    """A tenant's life: turns and imports with long texts, memories, keys, deletions, erasures that go on in the queue."""
    platform = aws.platform
    tenant = platform.post("/v1/tenants", {"name": "Tenant"})["id"]
    admin = aws.user(tenant)
    admin.patch(f"/v1/tenants/{tenant}/memory-settings", {"mode": "durable", "retention": "automatic"})
    secret = admin.post(f"/v1/tenants/{tenant}/api-keys", {"name": "k", "scopes": ["chat"]})["secret"]
    aws.invoke("authorizer", events.authorizer(f"Bearer {secret}"))
    ada = aws.key(tenant, "ada")
    conversation = ada.conversation()
    path = f"/v1/conversations/{conversation}"
    for number, words in enumerate(("I live in Bergen.", "Remember this: my boat is called Numbat.", LONG)):
        answer = ada.send("POST", f"{path}/messages", {"content": words}, headers={"Idempotency-Key": f"k{number}"})
        assert answer.status == 200
    ada.post(f"{path}/import", {"messages": [{"role": "user", "content": LONG}] * 2})
    first = ada.messages(conversation)[0]["id"]
    ada.post(f"{path}/compact", {})
    ada.post(f"{path}/recall", {"query": "Bergen"})
    ada.post(f"{path}/rollback", {"to_message_id": first})
    ada.get(f"{path}/context/frames")
    ada.patch(path, {"title": "t"})
    one, other = (ada.post("/v1/memories/entities", {"name": name, "entity_type": "person"})["id"] for name in ("Mira", "Olaf"))
    ada.post("/v1/memories/relations", {"source_entity_id": one, "target_entity_id": other, "relation_type": "knows"})
    ada.search("Mira", sources=["memories", "messages"])
    assert ada.tool("search_memory", query="Mira").body["result"]["isError"] is False
    assert ada.tool("remember", text="I work at Acme.").body["result"]["isError"] is False
    ada.delete(f"/v1/memories/entities/{other}")
    aws.queued()
    aws.clock.forward(seconds=190)  # behind the cooldown, where the sweeper wakes a conversation
    aws.invoke("sweeper", {})
    aws.deliver()
    aws.index()
    aws.deliver()
    admin.get(f"/v1/tenants/{tenant}/memories", q="Mira")
    admin.walk("/v1/audit")
    assert admin.send("GET", "/v1/subjects/ada/export").status == 200
    ada.delete(path)
    aws.context.left = 0
    assert admin.send("DELETE", "/v1/subjects/ada").status == 202
    aws.deliver()  # out of time once more: it queues itself
    aws.context.left = 100_000
    aws.deliver()
    platform.delete(f"/v1/tenants/{tenant}")


@pytest.fixture
def calls(aws: World) -> Calls:
    use(aws.patch, "embedder", HashEmbedder())
    with recorded(aws.patch) as made:
        live(aws)
    return made


def test_no_function_lacks_a_permission_that_it_needs(calls: Calls) -> None:
    assert len(calls.made) == 9
    lacking = {name: sorted(needed - grants(f"{name.title()}Function")) for name, needed in calls.made.items()}
    assert {name: found for name, found in lacking.items() if found} == {}


def test_a_function_that_does_one_thing_may_do_no_other(calls: Calls) -> None:
    for name, others in (("authorizer", set()), ("sweeper", {"bedrock", "es"})):
        spare = grants(f"{name.title()}Function") - calls.made[name]
        assert {action.partition(":")[0] for action, _ in spare if not action.startswith("kms")} <= others, spare
