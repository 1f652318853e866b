"""What every route does: problems, idempotency, limits, CORS, audit; and one warm process that serves many."""

import json
from typing import Any

import pytest
from tidemark.tenancy.caller import Caller

from tests.support import events
from tests.support.world import Answer, Client, World, new_process


# problems
def test_every_problem_has_the_same_shape(aws: World, ada: Client) -> None:
    member = aws.user(ada.caller.tenant_id, "member")
    conversation = ada.conversation()
    problems: list[tuple[Answer, int, str]] = [
        (ada.send("POST", "/v1/conversations", raw="{"), 400, "malformed_json"),
        (ada.send("GET", "/v1/conversations", cursor="x"), 400, "invalid_cursor"),
        (aws.key(ada.caller.tenant_id, "ada", scopes=["chat"]).send("GET", "/v1/memories/entities"), 403, "insufficient_scope"),
        (member.send("GET", "/v1/tenants"), 403, "forbidden"),
        (ada.send("GET", "/v1/conversations/cnv_x"), 404, "not_found"),
        (ada.send("GET", "/v1/no-such-route"), 404, "route_not_found"),
        (ada.send("DELETE", "/v1/conversations"), 404, "route_not_found"),
        (aws.key(ada.caller.tenant_id).send("POST", "/v1/memories/remember", {"text": "x"}), 409, "memory_scope_unavailable"),
        (ada.send("PATCH", f"/v1/conversations/{conversation}", {}, headers={"If-Match": '"x"'}), 412, "precondition_failed"),
        (ada.send("POST", "/v1/conversations", {}, headers={"Content-Type": "text/plain"}), 415, "unsupported_media_type"),
        (ada.send("POST", "/v1/conversations", {"metadata": 5}), 422, "validation_failed"),
    ]
    for answer, status, code in problems:
        assert (answer.status, answer.code) == (status, code)
        assert {"type", "title", "status", "detail", "code", "request_id"} <= set(answer.body)
        assert answer.body["request_id"] == answer.headers["x-request-id"]
        assert answer.body["status"] == status


def test_validation_says_where(ada: Client) -> None:
    answer = ada.send(
        "POST",
        f"/v1/conversations/{ada.conversation()}/import",
        {"messages": [{"role": "user", "content": "x"}, {"role": "cat", "content": 5}]},
    )
    assert {one["path"] for one in answer.body["errors"]} == {"/messages/1/role", "/messages/1/content"}


def test_an_unexpected_error_tells_nothing_of_what_was_said(aws: World, ada: Client, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret sentence")

    aws.patch.setattr("tidemark.conversations.service.ConversationService.create", broken)
    answer = ada.send("POST", "/v1/conversations", {"external_subject_id": "ada"})
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "secret sentence" not in json.dumps(answer.body) + capsys.readouterr().out


def test_nothing_that_was_said_is_logged(
    aws: World, ada: Client, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    ada.say(ada.conversation(), "Remember this: my boat is called Heliotrope.")
    ada.say(ada.conversation(), "I work at Heliotrope Shipping.")
    aws.learn()
    ada.search("Heliotrope")
    logged = caplog.text + " ".join(str(vars(record)) for record in caplog.records) + capsys.readouterr().out
    assert "Heliotrope" not in logged


# idempotency
def once(client: Client, key: str, body: Any, path: str = "/v1/conversations") -> Answer:
    return client.send("POST", path, body, headers={"Idempotency-Key": key})


def test_the_same_key_and_request_give_the_stored_answer(ada: Client) -> None:
    first, again = once(ada, "k", {"title": "a"}), once(ada, "k", {"title": "a"})
    assert (again.status, again.body) == (201, first.body)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert ada.query
    assert len(ada.world.user(ada.caller.tenant_id).walk("/v1/conversations")) == 1


def test_a_turn_with_a_key_is_asked_once(ada: Client) -> None:
    conversation = ada.conversation()
    path = f"/v1/conversations/{conversation}/messages"
    first, again = (once(ada, "k", {"content": "hello"}, path) for _ in range(2))
    assert first.body == again.body
    assert len(ada.messages(conversation)) == 2


@pytest.mark.parametrize(("body", "path"), [({"title": "b"}, "/v1/conversations"), ({"title": "a", "x": 1}, "/v1/conversations")])
def test_another_request_with_a_used_key_is_refused(ada: Client, body: Any, path: str) -> None:
    once(ada, "k", {"title": "a"})
    assert (once(ada, "k", body, path).status, once(ada, "k", body, path).code) == (422, "idempotency_key_reused")


def test_keys_belong_to_their_tenant(aws: World, ada: Client) -> None:
    other = aws.key(aws.tenant(), "ada")
    assert once(ada, "k", {"title": "a"}).body["id"] != once(other, "k", {"title": "a"}).body["id"]


def test_a_stored_answer_is_only_for_those_who_may_have_asked_for_it(aws: World) -> None:
    tenant = aws.tenant()
    admin, body = aws.user(tenant), {"name": "Helper", "system_prompt": "TOPSECRETPROMPT"}
    first = once(admin, "k", body, "/v1/agents")
    assert first.status == 201
    for other in (aws.user(tenant, role="member"), aws.key(tenant, scopes=["chat"]), aws.key(tenant, scopes=["memory:read"])):
        refused = once(other, "k", body, "/v1/agents")
        assert (refused.status, refused.code) == (403, "insufficient_scope")
        assert "TOPSECRETPROMPT" not in json.dumps(refused.body)
    assert once(aws.user(tenant), "k", body, "/v1/agents").body == first.body
    assert [one["name"] for one in admin.walk("/v1/agents")].count("Helper") == 1


def test_only_success_is_stored(ada: Client) -> None:
    assert once(ada, "k", {"knowledge_base_id": "kb_x"}).status == 404
    assert once(ada, "k", {"title": "a"}).status == 201


def test_a_request_that_still_runs_is_in_flight(aws: World, ada: Client) -> None:
    inner: list[Answer] = []

    def slow(service: Any, caller: Caller, body: Any) -> Any:
        if not inner:
            inner.append(once(ada, "k", {"title": "a"}))
        raise AssertionError

    aws.patch.setattr("tidemark.conversations.service.ConversationService.create", slow)
    once(ada, "k", {"title": "a"})
    assert (inner[0].status, inner[0].code) == (409, "idempotency_in_flight")
    assert int(inner[0].headers["retry-after"]) >= 1


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb"])
def test_a_key_is_1_to_255_printable_ascii_characters(ada: Client, key: str) -> None:
    assert (once(ada, key, {}).status, once(ada, key, {}).code) == (422, "validation_failed")


def test_a_replayed_key_creation_hides_the_secret(aws: World) -> None:
    tenant = aws.tenant()
    admin = aws.user(tenant)
    path, body = f"/v1/tenants/{tenant}/api-keys", {"name": "k", "scopes": ["chat"]}
    first, again = (once(admin, "k", body, path) for _ in range(2))
    assert first.body["secret"].startswith("tm_")
    assert again.body == first.body | {"secret": None}
    assert all(first.body["secret"] not in str(item) for item in aws.items())


# origins
@pytest.mark.parametrize(("origin", "allowed"), [("https://app.example", True), ("https://evil.example", False)])
def test_browsers_of_configured_origins_may_read_answers(ada: Client, origin: str, allowed: bool) -> None:
    for path in ("/v1/conversations", "/v1/conversations/cnv_x"):
        answer = ada.send("GET", path, headers={"Origin": origin})
        assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)
        assert "Origin" in answer.headers["vary"]


def test_open_routes_need_no_caller(aws: World) -> None:
    for path in ("/health", "/openapi.json", "/docs"):
        assert aws.serve("tenants", events.http("GET", path)).status == 200


# audit
def test_refusals_are_recorded_and_only_administrators_read_them(aws: World) -> None:
    tenant = aws.tenant()
    member, admin = aws.user(tenant, "member", "eve"), aws.user(tenant)
    assert member.refused("GET", "/v1/audit") == (403, "insufficient_scope")
    entries = admin.walk("/v1/audit")
    assert (entries[0]["actor"]["id"], entries[0]["decision"]) == ("eve", "deny")
    assert [one["at"] for one in entries] == sorted((one["at"] for one in entries), reverse=True)


def test_session_searches_are_audited_with_their_decision(aws: World, ada: Client) -> None:
    conversation = ada.conversation(workspace_id="w")
    assert ada.refused("GET", "/v1/search/sessions", q="x", conversation_id=conversation, scope="global") == (
        403,
        "deny_global_requires_intent",
    )
    assert ada.get("/v1/search/sessions", q="x", conversation_id=conversation)["decision"] == "allow_same_session"
    decisions = [one["decision"] for one in aws.user(ada.caller.tenant_id).walk("/v1/audit") if one["action"] == "session_search"]
    assert decisions == ["allow_same_session", "deny_global_requires_intent"]


# one process, many tenants
def test_a_warm_process_mixes_no_tenants(aws: World) -> None:
    clients = [aws.key(aws.tenant(), subject) for subject in ("ada", "ada", "bob")]
    for number, client in enumerate(clients):
        client.say(client.conversation(), f"Remember this: my locker number is 10{number}.")
    new_process()
    for _ in range(2):
        for number, client in enumerate(clients):
            answer = client.say(client.conversation(), "What is my locker number?")["message"]["content"]
            assert [f"10{other}" in answer for other in range(3)] == [other == number for other in range(3)]
            assert len(client.memories()) == 1
