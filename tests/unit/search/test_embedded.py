"""What only the embedded index has to promise: a file that several processes share, and its own upkeep."""

import multiprocessing
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Document, IndexModelMismatchError, Query, SearchUnavailableError

NOW = datetime(2024, 5, 8, tzinfo=UTC)


def document(id: str, text: str = "tea", scope: str = "ada") -> Document:
    return Document(
        id=id, kind="memory", tenant_id="ten", scope=scope, text=text, occurred_at=NOW, updated_at=NOW, vector=[1.0, 0.0]
    )  # fmt: skip


def found(index: EmbeddedIndex, text: str = "tea", scope: str = "ada") -> set[str]:
    return {candidate.id for candidate in index.search(Query("ten", scope, "memory", text, 1000, [1.0, 0.0]))}


def write_and_read(path: Path, worker: int) -> None:
    index = EmbeddedIndex(path, "toy", 2)
    for number in range(20):
        index.upsert([document(f"{worker}-{number}"), document(f"{worker}-{number}-own", scope=str(worker))])
        assert f"{worker}-{number}" in found(index)
    index.delete("ten", [f"{worker}-{number}" for number in range(0, 20, 2)])


def test_several_processes_write_and_read_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    workers = [multiprocessing.get_context("spawn").Process(target=write_and_read, args=(path, worker)) for worker in range(3)]
    for process in workers:
        process.start()
    for process in workers:
        process.join(60)
    assert [process.exitcode for process in workers] == [0, 0, 0]
    index = EmbeddedIndex(path, "toy", 2)
    assert found(index) == {f"{worker}-{number}" for worker in range(3) for number in range(1, 20, 2)}
    assert len(found(index, scope="1")) == 20


def test_threads_share_an_index(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)

    def write(writer: int) -> None:
        for number in range(10):
            index.upsert([document(f"{writer}-{number}")])

    threads = [Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found(index)) == 40


def test_a_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)
    index.upsert([document("parent")])
    child = os.fork()
    if child == 0:
        try:
            index.upsert([document("child")])
            os._exit(0 if found(index) == {"parent", "child"} else 1)
        except BaseException:  # noqa: BLE001 - a child of a test must not run on as pytest
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found(index) == {"parent", "child"}


def test_what_was_stored_is_there_after_reopening(tmp_path: Path) -> None:
    EmbeddedIndex(tmp_path / "deep" / "index.sqlite", "toy", 2).upsert([document("one")])
    assert found(EmbeddedIndex(tmp_path / "deep" / "index.sqlite", "toy", 2)) == {"one"}


@pytest.mark.parametrize(("model", "dimension"), [("other", 2), ("toy", 3)])
def test_another_model_or_dimension_is_a_clear_error(tmp_path: Path, model: str, dimension: int) -> None:
    EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)
    with pytest.raises(IndexModelMismatchError, match="toy"):
        EmbeddedIndex(tmp_path / "index.sqlite", model, dimension)


def test_a_file_that_is_no_database_is_unavailable_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"not a database, surely not one" * 200)
    with pytest.raises(SearchUnavailableError):
        EmbeddedIndex(path, "toy", 2)


def test_a_lost_table_is_unavailable_not_empty(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)
    index.upsert([document("one")])
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("DROP TABLE postings")
    with pytest.raises(SearchUnavailableError):
        found(index)


def test_updates_in_place_do_not_grow_the_file(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)
    index.upsert([document("one")])
    for _ in range(200):
        index.upsert([document("one")])
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM vectors_chunks").fetchone() == (1,)
        assert connection.execute("SELECT documents, length FROM partitions").fetchall() == [(1, 1)]


def test_a_long_question_is_asked_by_its_rarest_words(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.sqlite", "toy", 2)
    words = [f"word{number}" for number in range(200)]
    index.upsert([document("common", " ".join(words[:150])), document("rare", "xylophone")])
    index.upsert([document(f"c{number}", " ".join(words[:100])) for number in range(5)])
    hits = {c.id: c.bm25 for c in index.search(Query("ten", "ada", "memory", " ".join([*words, "xylophone"]), 100))}
    assert hits.get("rare") is not None


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SearchUnavailableError):
        EmbeddedIndex(tmp_path / "file" / "index.sqlite", "toy", 2)
