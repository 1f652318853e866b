"""A person's export: whole in one answer where it fits, else in pages that say how to go on."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tidemark.privacy import export

from tests.support.world import Answer, Client, World

SUBJECT = "a/da#1 ü"
PATH = "/v1/subjects/a%2Fda%231%20%C3%BC/export"


def lines(answer: Answer) -> list[dict[str, Any]]:
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.body.splitlines()]


def following(answer: Answer) -> dict[str, Any] | None:
    """The query of the next page, which Link and the last line tell alike."""
    found = re.fullmatch(r'<\?(.*)>; rel="next"', answer.headers.get("link", ""))
    last = lines(answer)[-1:]
    told = [one["data"]["cursor"] for one in last if one["type"] == "next"]
    if found is None:
        assert told == []
        return None
    query = dict(parse_qsl(found[1], strict_parsing=True))
    assert told == [query["cursor"]]
    return query


def walked(admin: Client, path: str = PATH, **query: str) -> tuple[list[dict[str, Any]], int]:
    """All lines, and on how many pages they came."""
    found: list[dict[str, Any]] = []
    pages, more = 0, dict[str, Any](query)
    while True:
        answer = admin.send("GET", path, **more)
        pages += 1
        next_query = following(answer)
        found += [one for one in lines(answer) if one["type"] != "next"]
        if next_query is None:
            return found, pages
        more = next_query


@pytest.fixture
def lived(aws: World) -> Client:
    """The administrator of a tenant in which the person has something of every kind."""
    tenant = aws.tenant()
    admin, api = aws.user(tenant), aws.key(tenant, SUBJECT)
    base = admin.post("/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
    for title in ("one", "two"):
        conversation = api.conversation(title=title)
        for words in ("I live in Bergen.", "Remember this: my boat is called Numbat."):
            api.say(conversation, words)
    api.say(api.conversation(knowledge_base_id=base), "Remember this: the ladder is behind the boiler.")
    one, other = (api.post("/v1/memories/entities", {"name": name, "entity_type": "person"})["id"] for name in ("Mira", "Olaf"))
    api.post("/v1/memories/relations", {"source_entity_id": one, "target_entity_id": other, "relation_type": "knows"})
    api.put(f"/v1/memories/entities/{one}", {"description": "a friend"})
    return admin


@pytest.mark.parametrize("size", [1, 1500, 5000])
def test_pages_of_any_size_hold_the_same_lines_as_one_answer(lived: Client, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole, pages = walked(lived)
    assert pages == 1
    assert {one["type"] for one in whole} == {"conversation", "message", "entity", "history", "relation"}
    assert "boiler" in str(whole)
    monkeypatch.setattr(export, "PAGE_BYTES", size)
    for path, query in ((PATH, {}), ("/v1/subjects/export", {"external_subject_id": SUBJECT})):
        found, pages = walked(lived, path, **query)
        assert pages > 1
        assert found == whole


def test_more_than_a_function_may_answer_comes_whole(aws: World) -> None:
    tenant = aws.tenant()
    api, admin = aws.key(tenant, SUBJECT), aws.user(tenant)
    conversation = api.conversation()
    said = [f'{number} "{"x" * 90_000}"' for number in range(75)]
    for start in range(0, len(said), 25):
        messages = [{"role": "user", "content": words} for words in said[start : start + 25]]
        api.post(f"/v1/conversations/{conversation}/import", {"messages": messages})
    sizes = []
    more: dict[str, Any] | None = {}
    found: list[str] = []
    while more is not None:
        answer = admin.send("GET", PATH, **more)
        sizes.append(len(json.dumps(answer.body)))
        found += [one["data"]["content"] for one in lines(answer) if one["type"] == "message"]
        more = following(answer)
    assert found == said
    assert len(sizes) == 2
    assert max(sizes) < 6 * 1024 * 1024


def test_a_cursor_is_good_for_its_person_and_tenant_only(aws: World, lived: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE_BYTES", 1)
    more = following(lived.send("GET", PATH))
    assert more is not None
    stranger = aws.user(aws.tenant())
    assert stranger.refused("GET", PATH, **more) == (400, "invalid_cursor")
    assert lived.refused("GET", "/v1/subjects/bob/export", **more) == (400, "invalid_cursor")
    assert aws.user(lived.caller.tenant_id, "member").refused("GET", PATH, **more) == (403, "insufficient_scope")


def test_an_export_is_audited_once_however_many_pages_it_has(lived: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE_BYTES", 3000)
    assert walked(lived)[1] > 2
    assert [one["action"] for one in lived.walk("/v1/audit")].count("subject.export") == 1
