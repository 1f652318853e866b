"""The stream's reader: the index follows the table, in order, however often the stream repeats itself."""

import copy
from typing import Any

import pytest
from tidemark import bootstrap, clock
from tidemark.search.port import Query, SearchUnavailableError
from tidemark.storage import keys, table

from tests.support import events, metrics
from tests.support.world import Client, World


@pytest.fixture
def ada(aws: World) -> Client:
    client = aws.key(aws.tenant(), "ada")
    aws.changes()
    return client


def indexed(client: Client, text: str, kind: Any = "memory") -> list[str]:
    """Ids of the documents that hold a word, whatever the table says."""
    from tidemark.memory.scope import Scope  # noqa: PLC0415 - only here

    key = Scope(kind="subject", external_subject_id=client.query["external_subject_id"]).key
    found = bootstrap.index().search(Query(client.caller.tenant_id, key, kind, text, 50))
    return sorted(one.id for one in found if one.bm25 is not None)


def deliver(aws: World, changes: list[dict[str, Any]]) -> list[str]:
    answer = aws.invoke("indexer", events.stream(changes))
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


def remember(client: Client, name: str, **more: Any) -> str:
    made: str = client.post("/v1/memories/entities", {"name": name, "entity_type": "concept", **more})["id"]
    return made


def test_what_is_written_is_indexed(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    assert deliver(aws, aws.changes()) == []
    assert indexed(ada, "heliotrope") == [made]


def test_repeated_and_late_records_leave_the_newest_state(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope", description="first")
    ada.put(f"/v1/memories/entities/{made}", {"description": "second"})
    changes = aws.changes()
    for _ in range(2):
        assert deliver(aws, changes) == []
    assert indexed(ada, "second") == [made]
    assert deliver(aws, changes[:1]) == []  # the first record once more, alone
    assert indexed(ada, "second") == [made]
    assert indexed(ada, "first") == []


def test_what_the_table_drops_at_its_time_leaves_no_words_behind(aws: World, ada: Client) -> None:
    secret, other = remember(ada, "heliotrope", description="grown by the pier"), remember(ada, "pier")
    ada.post("/v1/memories/relations", {"source_entity_id": secret, "target_entity_id": other, "relation_type": "related_to"})
    ada.delete(f"/v1/memories/entities/{secret}")
    again = remember(ada, "heliotrope", description="another one")
    aws.index()
    assert "grown by the pier" in str(aws.items())
    [item] = [one for one in aws.items() if one["sk"] == f"{keys.ENTITIES}{secret}"]
    table.delete((item["pk"], item["sk"]))  # what DynamoDB does thirty days later
    aws.index()
    assert "grown by the pier" not in str(aws.items())
    assert secret not in str(aws.items())
    assert ada.post("/v1/memories/entities", {"name": "heliotrope", "entity_type": "concept"})["id"] == again


def test_a_deleted_thing_leaves_the_index_also_when_old_records_come_again(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    created = aws.changes()
    deliver(aws, created)
    ada.delete(f"/v1/memories/entities/{made}")
    assert deliver(aws, aws.changes()) == []
    assert indexed(ada, "heliotrope") == []
    deliver(aws, created)
    assert ada.search("heliotrope")["items"] == []


def test_records_of_one_batch_apply_in_their_order(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    ada.delete(f"/v1/memories/entities/{made}")
    ada.post(f"/v1/memories/entities/{made}/restore", {"version": 1})
    assert deliver(aws, aws.changes()) == []
    assert indexed(ada, "heliotrope") == [made]


def test_a_removed_item_is_a_tombstone(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    changes = aws.changes()
    deliver(aws, changes)
    gone = [{"Keys": change["Keys"], "OldImage": change["NewImage"], "SequenceNumber": f"9{place}"} for place, change in enumerate(changes)]
    assert deliver(aws, gone) == []
    assert indexed(ada, "heliotrope") == []
    assert made


def test_a_poison_record_is_named_and_what_stands_before_it_is_indexed(aws: World, ada: Client) -> None:
    before, after = remember(ada, "heliotrope"), remember(ada, "marigold")
    changes = aws.changes()
    place = next(place for place, one in enumerate(changes) if after in str(one["Keys"]))
    poison = copy.deepcopy(changes[place])
    poison["NewImage"]["data"] = {"S": "{not json"}
    assert deliver(aws, [*changes[:place], poison, *changes[place + 1 :]]) == [poison["SequenceNumber"]]
    assert indexed(ada, "heliotrope") == [before]
    assert indexed(ada, "marigold") == []
    assert deliver(aws, changes[place:]) == []
    assert indexed(ada, "marigold") == [after]


def test_the_whole_batch_comes_again_while_the_index_is_away(aws: World, ada: Client) -> None:
    made = remember(ada, "heliotrope")
    changes = aws.changes()
    index = bootstrap.index()

    class Away:
        def __getattr__(self, name: str) -> Any:
            def refuse(*_: Any, **__: Any) -> None:
                raise SearchUnavailableError

            return refuse

    aws.patch.setattr(bootstrap, "index", Away)
    bootstrap.indexing.cache_clear()
    bootstrap.stream_indexer.cache_clear()
    with pytest.raises(SearchUnavailableError):
        deliver(aws, changes)
    aws.patch.setattr(bootstrap, "index", lambda: index)
    bootstrap.indexing.cache_clear()
    bootstrap.stream_indexer.cache_clear()
    assert deliver(aws, changes) == []
    assert indexed(ada, "heliotrope") == [made]


def test_messages_are_indexed_and_a_deleted_conversation_is_not(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "The mast is nineteen metres tall.")
    written = aws.changes()
    deliver(aws, written)
    assert len(indexed(ada, "mast", "message")) >= 1
    ada.send("DELETE", f"/v1/conversations/{conversation}")
    deliver(aws, aws.changes())
    assert indexed(ada, "mast", "message") == []
    deliver(aws, written)  # late records of what is gone bring nothing back
    assert indexed(ada, "mast", "message") == []


def test_the_lag_of_search_is_measured_from_the_oldest_change_of_a_batch(
    aws: World, ada: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(ada, "heliotrope")
    changes = aws.changes()
    written = int(clock.now().timestamp())
    aws.clock.forward(minutes=5)
    deliver(aws, [one | {"ApproximateCreationDateTime": written + place} for place, one in enumerate(changes)])
    assert metrics.told(capsys, "IndexLag") == [pytest.approx(300, abs=10)]
    deliver(aws, [])
    assert metrics.told(capsys, "IndexLag") == []


def test_a_batch_that_was_not_indexed_has_no_lag_yet(aws: World, ada: Client, capsys: pytest.CaptureFixture[str]) -> None:
    remember(ada, "heliotrope")
    [first, *_] = aws.changes()
    first["NewImage"]["data"] = {"S": "{not json"}
    first["NewImage"]["kind"] = {"S": "entity"}
    assert deliver(aws, [first]) == [first["SequenceNumber"]]
    assert metrics.told(capsys, "IndexLag") == []


def test_a_counter_alone_indexes_nothing(aws: World, ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "My sister lives in Bergen."})
    aws.index()
    ada.search("Where does my sister live?")
    calls: list[Any] = []

    def note(_: Any, documents: Any, *more: Any) -> list[Any]:
        calls.extend(documents)
        return []

    aws.patch.setattr("tidemark.memory.indexing.Indexing.put", note)
    aws.index()
    assert calls == []
