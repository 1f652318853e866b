from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tidemark.conversations.requests import ConversationBody, ImportBody, PreferencesPatch, RecallBody, TurnBody
from tidemark.memory.records import PROPERTIES_DEPTH, EntityBody, ForgetBody
from tidemark.requests import Body, Subject, merged

SUBJECT: TypeAdapter[str] = TypeAdapter(Subject)


@pytest.mark.parametrize(
    "subject", ["a", "a#b", "a/b", "ten_x#c#y", "🙂", "Ωß检", " ", ".", "..", "x" * 256, "a&external_subject_id=b", "%2F"]
)
def test_a_subject_is_any_printable_text(subject: str) -> None:
    assert SUBJECT.validate_python(subject) == subject


@pytest.mark.parametrize("subject", ["", "x" * 257, "a\nb", "a\x00", "\x7f", "a\u2028b", "\ud800"])
def test_a_subject_is_1_to_256_characters_without_control_characters(subject: str) -> None:
    with pytest.raises(ValidationError):
        SUBJECT.validate_python(subject)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (TurnBody, {}),
        (TurnBody, {"content": ""}),
        (TurnBody, {"content": "x" * 200_001}),
        (TurnBody, {"content": 5}),
        (TurnBody, {"content": None, "tool_results": [{"tool_call_id": "a", "content": ""}]}),
        (TurnBody, {"content": "x", "max_tokens": "5"}),
        (TurnBody, {"content": "x", "max_tokens": True}),
        (TurnBody, {"content": "x", "stream": 1}),
        (TurnBody, {"content": "x", "memory": "on"}),
        (TurnBody, {"content": "x", "unknown": 1}),
        (TurnBody, {"content": "x", "attachments": [{"source_id": "a", "title": "t", "text": "x"}] * 21}),
        (TurnBody, {"content": "x", "tools": [{"name": "a b"}]}),
        (ConversationBody, {"metadata": {str(number): "x" for number in range(17)}}),
        (ConversationBody, {"metadata": {"a": 1}}),
        (ConversationBody, {"tenant_id": "ten_x"}),
        (ImportBody, {"messages": []}),
        (ImportBody, {"messages": [{"role": "user", "content": "x"}] * 101}),
        (ImportBody, {"messages": [{"role": "system", "content": "x"}]}),
        (ImportBody, {"messages": [{"role": "user", "content": "x", "created_at": 5}]}),
        (ImportBody, {"messages": [{"role": "user", "content": "x", "created_at": "2026-01-01"}]}),
        (PreferencesPatch, {"autocompact_pct": 0.49}),
        (PreferencesPatch, {"autocompact_pct": 0.96}),
        (PreferencesPatch, {"autocompact_pct": True}),
        (PreferencesPatch, {"keep_user_chars": -1}),
        (RecallBody, {}),
        (RecallBody, {"ids": ["msg_x"], "query": "x"}),
        (RecallBody, {"query": " "}),
        (RecallBody, {"query": "x", "limit": 51}),
        (EntityBody, {"name": "", "entity_type": "fact"}),
        (EntityBody, {"name": "  ", "entity_type": "fact"}),
        (EntityBody, {"name": "x" * 256, "entity_type": "fact"}),
        (EntityBody, {"name": "x", "entity_type": "animal"}),
        (EntityBody, {"name": "x", "entity_type": "fact", "properties": {"a": "x" * 17_000}}),
        (EntityBody, {"name": "x", "entity_type": "fact", "valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}),
        (ForgetBody, {}),
        (ForgetBody, {"query": "x", "ids": ["ent_x"]}),
        (ForgetBody, {"ids": []}),
    ],
)
def test_what_a_body_may_not_say(model: type[Body], body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(body)


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"a": 1}
    for _ in range(levels - 1):
        inner = {"a": inner}
    return inner


def test_properties_nest_sixteen_levels_and_no_more() -> None:
    EntityBody(name="x", entity_type="fact", properties=nested(PROPERTIES_DEPTH))
    for levels in (PROPERTIES_DEPTH + 1, 5000):
        with pytest.raises(ValidationError, match="levels"):
            EntityBody(name="x", entity_type="fact", properties=nested(levels))


@pytest.mark.parametrize(
    ("stored", "patch", "result"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3, "y": 2}}),
        ({"a": {"x": 1}}, {"a": {"x": None}}, {"a": {}}),
        ({}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_partial_change(stored: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = repr(stored)
    assert merged(stored, patch) == result
    assert repr(stored) == before
