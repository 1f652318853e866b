"""Sections J and K of the reports as the whole service meets them: model output, trust, filters, logs. Each test names its case."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tidemark import bootstrap
from tidemark.memory.model_extractor import MAX_OUTPUT_TOKENS, SCHEMA, ModelExtractor
from tidemark.models.ports import (
    ModelContextTooLongError,
    ModelMalformedError,
    ModelRequest,
    ModelResponse,
    TextDelta,
    Usage,
)
from tidemark.observability import logger
from tidemark.search.port import SearchUnavailableError

from tests.cases.test_cases_language import said
from tests.support.models import ScriptedModel
from tests.support.world import Client, World, use

HIDDEN = ("Heliotrope", "Petrel", "Ostrava", "quokka")


# J
class Talkative:
    """A model that cannot stop while it reads more than `most` characters of a log, or that takes no more than those."""

    def __init__(self, most: int, *, refuses: bool = False) -> None:
        self.most, self.refuses = most, refuses
        self.asked: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        self.asked.append(request)
        lines = [line for line in request.messages[0].content.split("\n") if " USER: " in line]
        over = sum(map(len, lines)) > self.most
        if over and self.refuses:
            raise ModelContextTooLongError("over the window")
        found = [{"message": n, "quote": json.loads(line.partition(" USER: ")[2]), "text": f"fact {n}"} for n, line in enumerate(lines)]
        text = '{"statements": [{"message": 0, "quo' if over else json.dumps({"statements": found})
        usage = Usage(input_tokens=0, output_tokens=0)
        yield ModelResponse(text=text, finish_reason="length" if over else "stop", usage=usage, model=request.model_id)


@pytest.mark.parametrize("refuses", [False, True])
def test_case_172_a_model_that_runs_to_its_limit_reads_less_at_once(refuses: bool) -> None:
    model = Talkative(150, refuses=refuses)
    texts = [f"I own {number} hens." for number in range(8)]
    found = ModelExtractor(model, "m").extract([said(text, id=f"m{place}") for place, text in enumerate(texts)], {})
    assert [statement.quote for statement in found] == texts
    assert len(model.asked) == 7  # 8, 4, 2, 2, 4, 2, 2 lines
    assert {request.max_tokens for request in model.asked} == {MAX_OUTPUT_TOKENS}


def test_case_172_one_long_message_is_read_in_parts_and_a_short_one_fails() -> None:
    words = " ".join(f"I own {number} hens." for number in range(500))
    model = Talkative(5_000)
    found = ModelExtractor(model, "m").extract([said(words)], {})
    assert len(found) > 1
    assert " ".join(statement.quote for statement in found) == words
    with pytest.raises(ModelContextTooLongError):
        ModelExtractor(Talkative(0, refuses=True), "m").extract([said("I own hens.")], {})
    with pytest.raises(ModelMalformedError):
        ModelExtractor(Talkative(0), "m").extract([said("I own hens.")], {})


def test_case_173_the_schema_has_no_keyword_that_a_provider_refuses() -> None:
    common = {"type", "additionalProperties", "required", "properties", "items", "enum"}

    def keywords(schema: dict[str, Any]) -> set[str]:
        inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
        return {*schema, *(word for one in inner for word in keywords(one))}

    assert keywords(SCHEMA) <= common


# K
def test_case_179_a_memory_is_trusted_as_its_least_trusted_source(aws: World, ada: Client) -> None:
    model = ScriptedModel(default="Noted.")
    told = {"messages": [{"role": "user", "content": "I like copper lanterns."}]}
    ada.post(f"/v1/conversations/{ada.conversation()}/import", told)
    aws.learn()
    ada.say(ada.conversation(), "I like copper lanterns.")
    aws.learn()
    [entity] = [one for one in ada.memories() if "lanterns" in one["name"] and one["entity_type"] == "preference"]
    assert [source["trust"] for source in entity["provenance"]] == ["import", "user"]
    use(aws.patch, "model", model)
    ada.say(ada.conversation(), "Which lanterns do I like?")
    facts = [line for line in (model.asked[-1].memory or "").split("\n") if "| fact |" in line and "lanterns" in line]
    assert facts
    assert all("| fact | import" in line for line in facts)


@pytest.mark.parametrize("filter_", ["*", "%", "_", '" OR "1"="1', "x' OR '1'='1", '{"$ne": null}', "a) OR (b"])
def test_case_180_a_filter_is_a_value_and_never_a_query(aws: World, ada: Client, filter_: str) -> None:
    ada.post("/v1/memories/entities", {"name": "Ruth", "entity_type": "person"})
    ada.say(ada.conversation(), "The lantern is copper.")
    aws.index()
    assert ada.get("/v1/memories/entities", q=filter_)["items"] == []
    body = {"query": "lantern", "sources": ["messages"], "speaker": filter_}
    assert ada.post("/v1/memories/search", body)["messages"] == []
    assert ada.refused("POST", "/v1/memories/search", {"query": "x", "entity_types": [filter_]}) == (422, "validation_failed")
    stranger = aws.key(ada.caller.tenant_id, filter_)
    assert stranger.memories() == []
    assert stranger.post("/v1/memories/search", {"query": "lantern", "sources": ["messages", "memories"]})["messages"] == []


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that the product logs, as its log has it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logger.registered_formatter)
    inner = logging.getLogger(logger.name or "tidemark")
    level = inner.level
    inner.addHandler(handler)
    inner.setLevel(logging.DEBUG)
    yield text
    inner.removeHandler(handler)
    inner.setLevel(level)


def test_case_181_no_name_fact_or_prompt_is_logged(aws: World, ada: Client, log: io.StringIO) -> None:
    model = ScriptedModel(default="Heliotrope it is.")
    use(aws.patch, "model", model)
    conversation = ada.conversation(title="Heliotrope")
    ada.say(conversation, "Remember this: my boat Petrel lies in Ostrava.")
    ada.say(conversation, "My quokka is called Heliotrope.")
    ada.post("/v1/memories/entities", {"name": "Petrel", "entity_type": "concept", "description": "in Ostrava"})
    ada.post("/v1/memories/search", {"query": "Where is Petrel?"})
    ada.refused("POST", "/v1/memories/entities", {"name": "Petrel", "entity_type": "quokka"})
    aws.learn()
    assert "resource" in log.getvalue()

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("could not read Petrel in Ostrava")

    for error in (SearchUnavailableError("Petrel"), RuntimeError("Ostrava")):
        model.enqueue(ModelMalformedError("Heliotrope"))
        aws.patch.setattr(bootstrap.index(), "search", lambda *_, error=error: (_ for _ in ()).throw(error))
        ada.send("POST", f"/v1/conversations/{conversation}/messages", {"content": "And the quokka?"})
        ada.send("POST", "/v1/memories/search", {"query": "Petrel"})
    assert '"ERROR"' in log.getvalue()
    assert [word for word in HIDDEN if word in log.getvalue()] == []


def test_case_182_an_unreadable_policy_stores_nothing(aws: World, ada: Client) -> None:
    tenant = ada.caller.tenant_id
    admin = aws.user(tenant)
    assert admin.refused("PATCH", f"/v1/tenants/{tenant}/memory-settings", {"secrets": "redakt"}) == (422, "validation_failed")
    stored = bootstrap.tenants().stored(tenant)
    broken = stored.model_copy(update={"memory_settings": {**stored.memory_settings, "secrets": "redakt"}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.tenancy.tenants.TenantService.stored", lambda *_: broken)
        answer = ada.send("POST", "/v1/memories/remember", {"text": "My key is sk-test-4eC39HqLyjWDarjtT1zdp7dc."})
    assert answer.status >= 500
    assert ada.memories() == []
