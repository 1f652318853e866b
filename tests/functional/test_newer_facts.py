"""Which of two facts that exclude each other holds: by their stated starts, else by when they were said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tidemark import bootstrap
from tidemark.memory.extractor import RuleExtractor
from tidemark.memory.model import SourceMessage
from tidemark.memory.records import StoredEntity
from tidemark.memory.scope import Scope
from tidemark.memory.store import MemoryStore, View
from tidemark.tenancy.caller import Actor
from tidemark.tenancy.model import ExtractionSettings, MemorySettings

from tests.support.world import World

AT = datetime(2024, 6, 19, 10, tzinfo=UTC)
SCOPE = Scope(kind="subject", external_subject_id="ada")
ACTOR = Actor(kind="api_key", id="k")
SETTINGS = MemorySettings(
    extraction=ExtractionSettings(async_enabled=True, model_id="", cooldown_seconds=60, max_pending_turns=5),
)
VIEW = View("t", SCOPE)
Told = tuple[str, timedelta]
SOON, WEEK = timedelta(minutes=5), timedelta(weeks=1)


def learn(*told: Told) -> list[StoredEntity]:
    """The facts that exclude others, after learning sentences one by one in this order, each said so long after AT."""
    for text, after in told:
        message = SourceMessage(id=f"{text} {after}", conversation_id="c", role="user", content=text, at=AT + after)
        statements = RuleExtractor().extract([message], {})
        bootstrap.learning().learn("t", SCOPE, statements, {message.id: message}, ACTOR, SETTINGS)
    facts = [entity for entity in bootstrap.memory_store().entities(VIEW, datetime.now(UTC)) if entity.exclusive]
    assert all(one.valid_from and (one.valid_to is None or one.valid_from <= one.valid_to) for one in facts)
    return facts


def current(*told: Told) -> list[str]:
    return [one.name for one in learn(*told) if one.valid_to is None]


@pytest.mark.parametrize(
    ("first", "second", "holds"),
    [
        ("I live in Lisbon.", "I moved to Porto last month.", "moved to Porto last month"),
        ("I live in Lisbon.", "I moved to Porto yesterday.", "moved to Porto yesterday"),
        ("I live in Lisbon.", "Correction: I moved to Porto last month.", "moved to Porto last month"),
        ("I live in Lisbon.", "I have lived in Porto since June.", "has lived in Porto since June"),
        ("I work at Siemens.", "I started at Zeiss last week.", "started at Zeiss last week"),
        ("I have two cats.", "I have three cats.", "has three cats"),
        ("My sister lives in Bergen.", "My sister moved to Oslo last week.", "sister moved to Oslo last week"),
        ("I am married to Anna.", "Anna and I got divorced last year.", "divorced"),
        ("我住在北京。", "我上个月搬到了上海。", "上海"),
        ("I moved to Porto last month.", "I live in Lisbon.", "lives in Lisbon"),
        ("I moved to Porto last year.", "I moved to Lisbon last month.", "moved to Lisbon last month"),
    ],
)
def test_what_is_said_later_holds_whatever_start_it_states(aws: World, first: str, second: str, holds: str) -> None:
    [name] = current((first, timedelta()), (second, SOON))
    assert holds in name


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("I live in Porto.", "I live in Lisbon."),
        ("I live in Porto.", "I moved to Lisbon last month."),
        ("I moved to Porto last month.", "I live in Lisbon."),  # said a week before, and after the stated start
        ("I live in Porto.", "I no longer live in Porto."),
    ],
)
def test_an_older_message_that_comes_later_replaces_nothing(aws: World, newer: str, older: str) -> None:
    [name] = current((newer, timedelta()), (older, -WEEK))
    assert "Porto" in name


def test_of_two_stated_starts_the_later_one_holds(aws: World) -> None:
    [name] = current(("I moved to Porto last month.", timedelta()), ("I moved to Lisbon last year.", SOON))
    assert "Porto" in name


def test_a_liking_ends(aws: World) -> None:
    assert current(("I like jazz.", timedelta()), ("I no longer like jazz.", SOON)) == []


def test_of_two_first_statements_at_once_the_later_one_closes_the_other(aws: World) -> None:
    read, others = MemoryStore.exclusive, iter([("I live in Lisbon.", timedelta())])

    def overtaken(store: MemoryStore, *of: Any) -> Any:
        """Another one's statement is stored between our read and our write."""
        found = read(store, *of)
        learn(*others)
        return found

    aws.patch.setattr(MemoryStore, "exclusive", overtaken)
    assert current(("I live in Porto.", SOON)) == ["lives in Porto"]


def test_learning_again_changes_nothing(aws: World) -> None:
    told = (("I live in Lisbon.", timedelta()), ("I moved to Porto last month.", SOON))
    assert learn(*told) == learn(*told)


def test_a_closed_fact_that_is_said_again_holds_again(aws: World) -> None:
    home = "I live in Lisbon."
    assert current((home, timedelta()), ("I moved to Porto last month.", SOON), (home, WEEK)) == ["lives in Lisbon"]
