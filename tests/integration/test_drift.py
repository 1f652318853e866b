"""The sweeper's comparison of table and index, on both indexes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from tidemark import bootstrap
from tidemark.memory.indexing import entity_document
from tidemark.memory.scope import Scope
from tidemark.search.port import Query, SearchUnavailableError

from tests.support import metrics, opensearch
from tests.support.models import HashEmbedder
from tests.support.world import TABLE, Client, World, use


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def aws(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with opensearch.searched_world(tmp_path, request.param) as made:
        use(made.patch, "embedder", HashEmbedder())
        yield made


def remember(client: Client, name: str) -> str:
    made: str = client.post("/v1/memories/entities", {"name": name, "entity_type": "concept"})["id"]
    return made


def found(client: Client, text: str, kind: Any = "memory") -> dict[str, bool]:
    """What holds a word, and whether it has a vector, whatever the table says."""
    key = Scope(kind="subject", external_subject_id="ada").key
    asked = bootstrap.index().search(Query(client.caller.tenant_id, key, kind, text, 50, bootstrap.embedder().embed_query(text)))
    return {one.id: one.cosine is not None for one in asked if one.bm25 is not None}


def sweep(aws: World) -> int:
    repaired: int = aws.invoke("sweeper", {})["repaired"]
    return repaired


def test_what_the_index_lost_comes_back_and_what_the_table_lost_goes(aws: World, ada: Client, capsys: pytest.CaptureFixture[str]) -> None:
    lost, kept, deleted, orphan = (remember(ada, f"heliotrope {name}") for name in ("one", "two", "three", "four"))
    aws.index()
    bootstrap.indexing().remove({ada.caller.tenant_id: [lost]})
    ada.delete(f"/v1/memories/entities/{deleted}")
    [item] = [item for item in aws.items() if item["sk"] == f"e#{orphan}"]
    boto3.resource("dynamodb").Table(TABLE).delete_item(Key={"pk": item["pk"], "sk": item["sk"]})
    aws.changes()  # the stream's records are lost
    assert set(found(ada, "heliotrope")) == {kept, deleted, orphan}
    aws.clock.forward(hours=1)
    assert sweep(aws) == 2  # a deletion's own mark in the table does not count
    assert metrics.told(capsys, "IndexRepaired") == [2]
    assert found(ada, "heliotrope") == {lost: True, kept: True}
    assert sweep(aws) == 0
    assert metrics.told(capsys, "IndexRepaired") == [0]


def test_messages_are_compared_too(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    said = {"messages": [{"role": "user", "content": f"saffron {number}"} for number in range(30)]}
    ids = ada.post(f"/v1/conversations/{conversation}/import", said)["message_ids"]
    aws.changes()  # the stream's records are lost
    assert found(ada, "saffron", "message") == {}
    aws.clock.forward(hours=1)
    assert sweep(aws) == 30
    assert found(ada, "saffron", "message") == dict.fromkeys(ids, True)


def test_an_older_state_is_brought_up_to_date(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    aws.index()
    ada.put(f"/v1/memories/entities/{made}", {"description": "grows by the pier"})
    aws.changes()  # the stream's records are lost
    aws.clock.forward(hours=1)
    assert sweep(aws) == 1
    assert found(ada, "pier") == {made: True}


def test_a_document_without_vector_gets_one(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    entity = bootstrap.memory_store().many(ada.caller.tenant_id, Scope(kind="subject", external_subject_id="ada"), [made])[made]
    aws.changes()
    bootstrap.index().upsert([entity_document(ada.caller.tenant_id, entity)])
    assert found(ada, "heliotrope") == {made: False}
    aws.clock.forward(hours=1)
    assert sweep(aws) == 1
    assert found(ada, "heliotrope") == {made: True}


def test_what_is_on_its_way_is_left_to_the_stream(aws: World, ada: Client) -> None:
    remember(ada, "heliotrope")
    assert sweep(aws) == 0


def test_the_sweeper_goes_on_without_the_index(aws: World, ada: Client) -> None:
    def away() -> None:
        raise SearchUnavailableError

    aws.patch.setattr(bootstrap, "index", away)
    bootstrap.drift.cache_clear()
    remember(ada, "heliotrope")
    aws.clock.forward(hours=1)
    assert aws.invoke("sweeper", {}) == {"woken": 0, "repaired": 0}
