"""Conversations through their handlers: made, listed, changed, erased, imported, branched."""

from typing import Any

import boto3
import pytest

from tests.support.world import BUCKET, Client, World

AWKWARD = ["a#b", "a/b", "..", "ten_x#c#y", "🙂", "检索", " ", "x" * 256, "a&b=c", "%2F", '"quoted"', "s.abc"]


def test_a_conversation_answers_all_its_fields(ada: Client) -> None:
    made = ada.post(
        "/v1/conversations",
        {"external_subject_id": "ada", "title": "Plans", "workspace_id": "w", "metadata": {"a": "b"}},
    )
    assert made == ada.get(f"/v1/conversations/{made['id']}")
    assert made | {"id": "", "tenant_id": "", "agent_id": "", "created_at": "", "updated_at": "", "last_activity_at": ""} == {
        "id": "",
        "tenant_id": "",
        "external_subject_id": "ada",
        "knowledge_base_id": None,
        "agent_id": "",
        "workspace_id": "w",
        "title": "Plans",
        "metadata": {"a": "b"},
        "head_message_id": None,
        "message_count": 0,
        "state": "active",
        "created_at": "",
        "updated_at": "",
        "last_activity_at": "",
    }


def test_the_newest_activity_stands_first_and_a_walk_sees_each_once(ada: Client) -> None:
    made = [ada.conversation() for _ in range(7)]
    ada.say(made[2], "hello")
    listed = [one["id"] for one in ada.walk("/v1/conversations", limit="2")]
    assert listed[0] == made[2]
    assert sorted(listed) == sorted(made)


def test_a_walk_of_messages_sees_each_once_while_writes_go_on(ada: Client) -> None:
    conversation = ada.conversation()
    for number in range(3):
        ada.say(conversation, f"message {number}")
    path, seen, more = f"/v1/conversations/{conversation}/messages", [], None
    while True:
        page = ada.get(path, limit="2", **({"cursor": more} if more else {}))
        seen += [one["id"] for one in page["items"]]
        more = page["next_cursor"]
        if more is None:
            break
        if len(seen) < 10:
            ada.say(conversation, "meanwhile")
    assert len(seen) == len(set(seen))
    assert seen == [one["id"] for one in ada.messages(conversation)][: len(seen)]


@pytest.mark.parametrize("subject", AWKWARD)
def test_awkward_subjects_see_their_own_and_nothing_else(aws: World, subject: str) -> None:
    tenant = aws.tenant()
    own = aws.key(tenant, subject)
    conversation = own.conversation()
    own.say(conversation, "Remember this: the code word is heliotrope.")
    assert [one["id"] for one in own.walk("/v1/conversations")] == [conversation]
    assert "heliotrope" in own.say(own.conversation(), "What is the code word?")["message"]["content"]
    for other in [one for one in ("ada", "a", "b", "s.abc", *AWKWARD[:3]) if one != subject]:
        stranger = aws.key(tenant, other)
        assert stranger.refused("GET", f"/v1/conversations/{conversation}") == (404, "not_found")
        assert stranger.walk("/v1/conversations") == []
        assert stranger.memories() == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"title": "x"}),
        ("DELETE", "", None),
        ("GET", "/messages", None),
        ("POST", "/messages", {"content": "x"}),
        ("POST", "/import", {"messages": [{"role": "user", "content": "x"}]}),
        ("POST", "/rollback", {"to_message_id": "msg_x"}),
        ("GET", "/summary", None),
        ("GET", "/context", None),
        ("GET", "/context/preferences", None),
        ("PATCH", "/context/preferences", {"keep_user_chars": 5}),
        ("POST", "/compact", {}),
        ("GET", "/compactions", None),
        ("GET", "/context/frames", None),
        ("POST", "/recall", {"query": "x"}),
        ("POST", "/extract", None),
    ],
)
def test_foreign_and_missing_conversations_are_the_same_404(
    aws: World, ada: Client, method: str, path: str, body: dict[str, Any] | None
) -> None:
    conversation = ada.conversation()
    tenant = ada.caller.tenant_id
    bob, nobody, elsewhere = aws.key(tenant, "bob"), aws.key(tenant), aws.key(aws.tenant(), "ada")
    missing = ada.send(method, f"/v1/conversations/cnv_01ARZ3NDEKTSV4RRFFQ69G5FAV{path}", body)
    assert (missing.status, missing.code) == (404, "not_found")
    for stranger in (bob, nobody, elsewhere):
        answer = stranger.send(method, f"/v1/conversations/{conversation}{path}", body)
        assert answer.body == missing.body
    assert ada.get(f"/v1/conversations/{conversation}")["message_count"] == 0


def test_a_dashboard_user_reads_all_of_its_tenant_and_no_other(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    admin = aws.user(ada.caller.tenant_id)
    assert admin.get(f"/v1/conversations/{conversation}")["id"] == conversation
    assert [one["id"] for one in admin.walk("/v1/conversations")] == [conversation]
    assert admin.walk("/v1/conversations", external_subject_id="bob") == []
    assert aws.user(aws.tenant()).refused("GET", f"/v1/conversations/{conversation}") == (404, "not_found")


# one version at a time
def test_if_match_guards_a_change(ada: Client) -> None:
    path = f"/v1/conversations/{ada.conversation()}"
    tag = ada.send("GET", path).headers["etag"]
    assert ada.send("PATCH", path, {"title": "one"}, headers={"If-Match": tag}).status == 200
    stale = ada.send("PATCH", path, {"title": "two"}, headers={"If-Match": tag})
    assert (stale.status, stale.code) == (412, "precondition_failed")
    assert ada.send("DELETE", path, headers={"If-Match": tag}).status == 412
    assert ada.get(path)["title"] == "one"
    assert ada.send("DELETE", path, headers={"If-Match": ada.send("GET", path).headers["etag"]}).status == 204


def test_metadata_is_replaced_and_what_is_not_named_stays(ada: Client) -> None:
    path = f"/v1/conversations/{ada.conversation(title='T', metadata={'a': '1'})}"
    assert ada.patch(path, {"metadata": {"b": "2"}})["metadata"] == {"b": "2"}
    assert ada.patch(path, {"metadata": None})["metadata"] == {}
    assert ada.get(path)["title"] == "T"


# erasing
def test_deleting_erases_everything_of_a_conversation(aws: World, ada: Client) -> None:
    conversation, other = ada.conversation(), ada.conversation()
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "large " * 20_000}]})
    ada.say(conversation, "The mast is nineteen metres tall.")
    ada.say(other, "Something else.")
    ada.post(f"/v1/conversations/{conversation}/compact", {})
    aws.index()
    assert ada.get("/v1/search/sessions", q="mast", conversation_id=conversation)["items"]
    assert ada.send("DELETE", f"/v1/conversations/{conversation}").status == 204
    assert ada.refused("GET", f"/v1/conversations/{conversation}/messages") == (404, "not_found")
    assert [item["sk"] for item in aws.items() if conversation in item["pk"]] == []
    assert boto3.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", []) == []
    aws.index()
    found = ada.get("/v1/search/sessions", q="mast", conversation_id=other, scope="global", user_intent="find it")
    assert found["items"] == []
    assert ada.search("How tall is the mast?", sources=["messages"])["messages"] == []


# imports
def test_an_import_is_appended_in_order_with_its_times(ada: Client) -> None:
    conversation = ada.conversation()
    given = [
        {"role": "user", "content": "Hello", "name": "Ada", "created_at": "2023-05-08T13:56:00+02:00"},
        {"role": "assistant", "content": "Hi", "created_at": "2023-05-08T11:56:00Z"},
        {"role": "user", "content": "x" * 50_000, "created_at": "2023-05-09T00:00:00Z"},
    ]
    answer = ada.post(f"/v1/conversations/{conversation}/import", {"messages": given})
    found = ada.messages(conversation)
    assert [one["id"] for one in found] == answer["message_ids"]
    assert [one["content"] for one in found] == [one["content"] for one in given]
    assert [one["created_at"] for one in found] == ["2023-05-08T11:56:00.000Z", "2023-05-08T11:56:00.000Z", "2023-05-09T00:00:00.000Z"]
    assert [one["parent_id"] for one in found] == [None, *answer["message_ids"][:-1]]
    assert {one["turn_id"] for one in found} == {None}
    assert ada.get(f"/v1/conversations/{conversation}")["title"] == "Hello"


@pytest.mark.parametrize("size", [1, 2, 44, 45, 46, 89, 90, 91, 99, 100])
def test_any_size_of_import_is_whole_and_in_order(ada: Client, size: int) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "before")
    given = [{"role": "user", "content": f"{number} " + "y" * (number % 7) * 6000} for number in range(size)]
    answer = ada.post(f"/v1/conversations/{conversation}/import", {"messages": given})
    found = ada.messages(conversation)[2:]
    assert [one["content"] for one in found] == [one["content"] for one in given]
    assert [one["id"] for one in found] == answer["message_ids"] == sorted(set(answer["message_ids"]))
    assert [one["sequence"] for one in found] == list(range(3, size + 3))


@pytest.mark.parametrize(
    ("times", "path"),
    [
        (["2023-05-08T00:00:00Z", "2023-05-07T23:59:59Z"], "/messages/1/created_at"),
        (["2023-05-08T00:00:00Z", None, "2023-05-08T00:00:00Z"], "/messages/2/created_at"),
        (["2999-01-01T00:00:00Z"], "/messages/0/created_at"),
    ],
)
def test_an_import_is_all_or_nothing(ada: Client, times: list[str | None], path: str) -> None:
    conversation = ada.conversation()
    given = [{"role": "user", "content": "x", **({"created_at": time} if time else {})} for time in times]
    answer = ada.send("POST", f"/v1/conversations/{conversation}/import", {"messages": given})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert ada.messages(conversation) == []


def test_an_import_never_lies_before_what_is_there(ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "now")
    body = {"messages": [{"role": "user", "content": "earlier", "created_at": "2023-05-08T00:00:00Z"}]}
    assert ada.refused("POST", f"/v1/conversations/{conversation}/import", body) == (422, "validation_failed")


# branches
def test_a_fork_leaves_the_other_branch_and_a_rollback_names_what_it_excludes(ada: Client) -> None:
    conversation = ada.conversation()
    first = ada.say(conversation, "one")["message"]["id"]
    second = ada.say(conversation, "two")["message"]["id"]
    forked = ada.say(conversation, "other two", parent_id=first)["message"]["id"]
    branch = [one["content"] for one in ada.messages(conversation) if one["role"] == "user"]
    assert branch == ["one", "other two"]
    assert len(ada.messages(conversation, branch="all")) == 6
    back = ada.post(f"/v1/conversations/{conversation}/rollback", {"to_message_id": second})
    assert back["head_message_id"] == second
    assert set(back["excluded_message_ids"]) == {forked, ada.messages(conversation, branch="all")[4]["id"]}
    assert [one["content"] for one in ada.messages(conversation) if one["role"] == "user"] == ["one", "two"]
    summary = ada.get(f"/v1/conversations/{conversation}/summary")
    assert summary["rollback"]["to_message_id"] == second
    assert summary["message_ids"] == [one["id"] for one in ada.messages(conversation)]


def test_parent_null_starts_a_new_root(ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "one")
    ada.say(conversation, "another beginning", parent_id=None)
    assert ada.messages(conversation)[0]["content"] == "another beginning"
    assert ada.get(f"/v1/conversations/{conversation}")["message_count"] == 4


@pytest.mark.parametrize("parent", ["msg_01ARZ3NDEKTSV4RRFFQ69G5FAV", "msg_x", "", "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAV"])
def test_an_unknown_parent_is_a_404(ada: Client, parent: str) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "one")
    for path, body in (("messages", {"content": "x", "parent_id": parent}), ("rollback", {"to_message_id": parent})):
        assert ada.refused("POST", f"/v1/conversations/{conversation}/{path}", body) == (404, "not_found")


def test_a_message_of_another_conversation_is_no_parent(ada: Client) -> None:
    conversation, other = ada.conversation(), ada.conversation()
    foreign = ada.say(other, "one")["message"]["id"]
    assert ada.refused("POST", f"/v1/conversations/{conversation}/messages", {"content": "x", "parent_id": foreign}) == (404, "not_found")
    assert ada.refused("POST", f"/v1/conversations/{conversation}/recall", {"ids": [foreign]}) == (404, "not_found")


# cursors
def test_a_cursor_is_good_for_its_list_only(aws: World, ada: Client) -> None:
    conversation, other = ada.conversation(), ada.conversation()
    for one in (conversation, other):
        ada.say(one, "a")
        ada.say(one, "b")
    cursor = ada.get(f"/v1/conversations/{conversation}/messages", limit="1")["next_cursor"]
    for client, path, more in (
        (ada, f"/v1/conversations/{other}/messages", {}),
        (ada, f"/v1/conversations/{conversation}/messages", {"branch": "all"}),
        (ada, "/v1/conversations", {}),
        (aws.user(aws.tenant()), "/v1/conversations", {}),
    ):
        assert client.refused("GET", path, cursor=cursor, **more) == (400, "invalid_cursor")
