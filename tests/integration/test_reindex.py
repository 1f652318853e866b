"""A new index beside the one that serves, on a real OpenSearch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tidemark import bootstrap
from tidemark.memory.reindex import Reindex
from tidemark.memory.scope import Scope
from tidemark.search.opensearch import OpenSearchIndex
from tidemark.search.port import IndexModelMismatchError, Query

from tests.support import opensearch
from tests.support.models import HashEmbedder
from tests.support.world import Client, World, new_process, use, world

pytestmark = pytest.mark.opensearch


class ToyEmbedder(HashEmbedder):
    def __init__(self, model_id: str, dimension: int = 32) -> None:
        self.model_id, self.dimension = model_id, dimension


@pytest.fixture
def prefix() -> Iterator[str]:
    name = f"test-{uuid4().hex[:12]}"
    yield name
    opensearch.drop(name)


@pytest.fixture
def aws(tmp_path: Path, prefix: str) -> Iterator[World]:
    with world(tmp_path, TIDEMARK_SEARCH="opensearch", TIDEMARK_OPENSEARCH_URL=opensearch.url(), TIDEMARK_OPENSEARCH_PREFIX=prefix) as made:
        use(made.patch, "embedder", ToyEmbedder("model-a"))
        yield made


def remember(client: Client, name: str, **more: Any) -> str:
    made: str = client.post("/v1/memories/entities", {"name": name, "entity_type": "concept", **more})["id"]
    return made


def found(client: Client, text: str, index: OpenSearchIndex | None = None) -> dict[str, bool]:
    """Memories that hold a word, and whether each has a vector."""
    asked = index or bootstrap.opensearch_index()
    asked.refresh()
    key = Scope(kind="subject", external_subject_id="ada").key
    query = Query(client.caller.tenant_id, key, "memory", text, 50, bootstrap.embedder().embed_query(text))
    return {one.id: one.cosine is not None for one in asked.search(query) if one.bm25 is not None}


def rebuild(**more: Any) -> Any:
    job: Reindex = bootstrap.reindex()
    return job.run(settle=0, **more)


def test_a_rebuilt_index_serves_what_the_table_holds(aws: World, ada: Client) -> None:
    kept = [remember(ada, f"heliotrope {number}") for number in range(5)]
    conversation = ada.conversation()
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": f"saffron {n}"} for n in range(90)]})
    aws.index()
    before = bootstrap.opensearch_index()
    bootstrap.indexing().remove({ada.caller.tenant_id: kept[:2]})  # lost by an accident
    report = rebuild()
    assert report.replaced == [f"{before.alias}.1"]
    assert found(ada, "heliotrope") == dict.fromkeys(kept, True)
    assert report.documents == 95


def test_writes_go_on_while_an_index_is_built(aws: World, ada: Client) -> None:
    first = remember(ada, "heliotrope one")
    aws.index()
    index = bootstrap.opensearch_index()
    name = f"{index.alias}.building"
    index.create(name, serving=False)
    aws.patch.setattr("tidemark.search.opensearch.TARGETS_SECONDS", 0)  # as if the time had passed that a rebuilding waits first
    new_process()
    second, doomed = remember(ada, "heliotrope two"), remember(ada, "heliotrope three")
    aws.index()
    bootstrap.opensearch_index(name).serve(name)
    assert set(found(ada, "heliotrope")) == {second, doomed}  # the writers know of it; the past is still missing
    ada.delete(f"/v1/memories/entities/{doomed}")
    aws.index()
    rebuild(name=name)
    assert found(ada, "heliotrope") == {first: True, second: True}


def test_an_interrupted_rebuilding_goes_on(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    aws.index()
    index = bootstrap.opensearch_index()
    index.create(f"{index.alias}.half", serving=False)
    report = rebuild(name=f"{index.alias}.half")
    assert found(ada, "heliotrope") == {made: True}
    assert report.passes == 2


def test_another_embedding_model_is_refused_until_it_has_an_index_of_its_own(aws: World, ada: Client) -> None:
    first = remember(ada, "heliotrope one")
    aws.index()
    old = bootstrap.opensearch_index()
    use(aws.patch, "embedder", ToyEmbedder("model-b", dimension=12))
    with pytest.raises(IndexModelMismatchError):
        found(ada, "heliotrope")
    rebuild()
    assert found(ada, "heliotrope") == {first: True}
    use(aws.patch, "embedder", ToyEmbedder("model-a"))
    assert found(ada, "heliotrope", old) == {first: True}  # functions of the old model see no gap
    second = remember(ada, "heliotrope two")
    aws.index()
    use(aws.patch, "embedder", ToyEmbedder("model-b", dimension=12))
    assert found(ada, "heliotrope") == {first: True, second: False}  # its words at once,
    aws.clock.forward(hours=1)
    assert mended() == 1  # its vector by the sweeper
    assert found(ada, "heliotrope") == {first: True, second: True}
    assert bootstrap.opensearch_index().drop_others(settle=0) == [f"{old.alias}.1"]


def mended() -> int:
    bootstrap.opensearch_index().refresh()
    return bootstrap.drift().check()


def test_an_index_that_is_going_is_written_to_no_more(aws: World, ada: Client) -> None:
    remember(ada, "heliotrope")
    aws.index()
    index = bootstrap.opensearch_index()
    index.create(f"{index.alias}.old", serving=False)
    aws.patch.setattr("tidemark.search.opensearch.time.sleep", lambda _: written(index))
    seen: list[set[str]] = []

    def written(index: OpenSearchIndex) -> None:
        seen.append({target.name for target in bootstrap.opensearch_index()._written()})

    index.drop([f"{index.alias}.old", "tidemark.unknown"])
    assert seen == [{f"{index.alias}.1"}]


def test_a_rebuilt_index_has_the_shards_that_are_configured_now(aws: World, ada: Client) -> None:
    remember(ada, "heliotrope")
    aws.index()
    aws.patch.setenv("TIDEMARK_OPENSEARCH_SHARDS", "3")
    use(aws.patch, "embedder", ToyEmbedder("model-a"))
    name = rebuild().index
    assert len(found(ada, "heliotrope")) == 1
    assert bootstrap.opensearch().indices.get(index=name)[name]["settings"]["index"]["number_of_shards"] == "3"
