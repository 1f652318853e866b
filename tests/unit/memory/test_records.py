from datetime import UTC, datetime, timedelta

import pytest
from tidemark.memory.records import StoredEntity, changes_between, holds, joined
from tidemark.memory.scope import TENANT

AT = datetime(2026, 11, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def entity(**fields: object) -> StoredEntity:
    return StoredEntity.model_validate(
        {"id": "ent_1", "name": "tea", "entity_type": "preference", "scope": TENANT, "created_at": AT, "updated_at": AT, **fields}
    )


@pytest.mark.parametrize(
    ("fields", "alive"),
    [
        ({}, True),
        ({"expires_at": AT + SECOND}, True),
        ({"expires_at": AT}, False),
        ({"deleted_at": AT - SECOND}, False),
        ({"valid_to": AT - SECOND}, True),
    ],
)
def test_expiry_goes_by_the_reader_s_clock(fields: dict[str, object], alive: bool) -> None:
    assert entity(**fields).alive(AT) == alive


def test_only_expiry_can_be_looked_behind() -> None:
    assert entity(expires_at=AT).alive(AT, include_expired=True)
    assert not entity(deleted_at=AT).alive(AT, include_expired=True)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(None, None, True), (AT, None, True), (AT + SECOND, None, False), (None, AT, False), (None, AT + SECOND, True)],
)
def test_validity_includes_its_beginning_and_not_its_end(start: datetime | None, end: datetime | None, expected: bool) -> None:
    assert holds(start, end, AT) == expected


@pytest.mark.parametrize(
    ("known", "added", "result"),
    [("", "a", "a"), ("a", "", "a"), ("a", "a", "a"), ("green tea", " tea ", "green tea"), ("a", "b", "a\nb")],
)
def test_nothing_is_said_twice_in_a_description(known: str, added: str, result: str) -> None:
    assert joined(known, added) == result


def test_changes_tell_old_and_new() -> None:
    old, new = entity(description="a"), entity(description="b", version=2, access_count=7)
    assert [(one.field, one.old, one.new) for one in changes_between(old, new)] == [("description", "a", "b")]
    assert {one.field for one in changes_between(None, new)} >= {"name", "description"}


def test_what_only_the_service_reads_is_never_answered() -> None:
    public = entity(mention=True, exclusive="home", value="Bergen", deleted_at=AT).public().model_dump()
    assert not {"mention", "exclusive", "value", "deleted_at"} & set(public)
