"""Requests that say two things at once are refused, never settled by a guess."""

from typing import Any

import pytest

from tests.support.models import ScriptedModel
from tests.support.world import Client, World

TOOLS = [{"name": "weather"}, {"name": "news"}, {"name": "weather"}]


def test_a_name_that_is_given_twice_is_no_json(ada: Client) -> None:
    answer = ada.send("POST", "/v1/conversations", raw='{"title": "a", "title": "b"}')
    assert (answer.status, answer.code) == (400, "malformed_json")
    assert ada.walk("/v1/conversations") == []


def test_two_tools_of_one_name_are_refused(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    answer = ada.send("POST", f"/v1/conversations/{conversation}/messages", {"content": "Weather?", "tools": TOOLS})
    assert (answer.status, [one["path"] for one in answer.body["errors"]]) == (422, ["/tools"])
    openai = [{"type": "function", "function": tool} for tool in TOOLS]
    asked = ada.send("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Weather?"}], "tools": openai})
    assert (asked.status, asked.body["error"]["param"]) == (422, "/tools")
    assert model.asked == []


@pytest.mark.parametrize("schema", ['{"title": "\\ud800"}', '{"items": ' * 300 + "1" + "}" * 300])
def test_a_schema_that_no_model_can_be_sent_is_refused(ada: Client, model: ScriptedModel, schema: str) -> None:
    tool = f'{{"name": "weather", "parameters": {schema}}}'
    conversation = ada.conversation()
    answer = ada.send("POST", f"/v1/conversations/{conversation}/messages", raw=f'{{"content": "Weather?", "tools": [{tool}]}}')
    assert (answer.status, [one["path"] for one in answer.body["errors"]]) == (422, ["/tools/0/parameters"])
    openai = f'{{"messages": [{{"role": "user", "content": "Weather?"}}], "tools": [{{"type": "function", "function": {tool}}}]}}'
    assert ada.send("POST", "/v1/chat/completions", raw=openai).status == 422
    assert (model.asked, ada.messages(conversation)) == ([], [])


@pytest.mark.parametrize("stored", [False, True])
def test_a_completion_for_two_subjects_is_refused(aws: World, ada: Client, model: ScriptedModel, *, stored: bool) -> None:
    bob = aws.key(ada.caller.tenant_id, "bob")
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "user": "bob"}
    if stored:
        body["metadata"] = {"conversation_id": bob.conversation()}
    refused = ada.send("POST", "/v1/chat/completions", body)
    assert (refused.status, refused.body["error"]["param"]) == (422, "/user")
    assert model.asked == []
    assert bob.send("POST", "/v1/chat/completions", body).status == 200
    assert aws.key(ada.caller.tenant_id).send("POST", "/v1/chat/completions", body).status == 200


def test_a_conversation_of_two_subjects_is_not_made(aws: World, ada: Client) -> None:
    answer = ada.send("POST", "/v1/conversations", {"external_subject_id": "bob"})
    assert (answer.status, [one["path"] for one in answer.body["errors"]]) == (422, ["/external_subject_id"])
    assert aws.user(ada.caller.tenant_id).walk("/v1/conversations") == []
