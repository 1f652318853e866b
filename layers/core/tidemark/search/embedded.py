"""The embedded index: one SQLite file with exact vector search and BM25, for a laptop and for tests. Nothing to set up.

Exact means exact: every filter narrows the rows before an arm is cut, so a page is full whenever enough rows match.
"""

import json
from array import array
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

import apsw

from tidemark.search import lexical
from tidemark.search.documents import own_words
from tidemark.search.lexical import LexicalHit
from tidemark.search.port import Candidate, Document, IndexModelMismatchError, Placed, Query
from tidemark.search.sqlite import Database, rows
from tidemark.search.text import fold, name_key, name_keys_in, query_words
from tidemark.search.times import instant, moment

_LAYOUT = "1"  # of the tables and of the words in them; another one is rebuilt, not migrated: the index is derived
_VECTOR_CHUNK = 64  # vec0 reserves whole chunks a scope: 1024, its default, is 1.5 MB for a scope with one memory
_MOST_NEAREST = 4096  # vec0's own bound

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitions (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, scope TEXT NOT NULL, kind TEXT NOT NULL,
    documents INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0, UNIQUE (tenant, scope, kind));
CREATE TABLE IF NOT EXISTS documents (
    doc INTEGER PRIMARY KEY, partition INTEGER NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, name_key TEXT NOT NULL,
    entity_type TEXT NOT NULL, conversation TEXT NOT NULL, workspace TEXT NOT NULL, speaker TEXT NOT NULL, speaker_key TEXT NOT NULL,
    role TEXT NOT NULL, position INTEGER NOT NULL, session INTEGER NOT NULL, occurred INTEGER NOT NULL, updated INTEGER NOT NULL,
    length INTEGER NOT NULL, has_vector INTEGER NOT NULL, UNIQUE (tenant, id));
CREATE INDEX IF NOT EXISTS documents_by_conversation ON documents (partition, conversation, position);
CREATE INDEX IF NOT EXISTS documents_by_name ON documents (partition, name_key) WHERE name_key != '';
CREATE INDEX IF NOT EXISTS documents_of_conversation ON documents (tenant, conversation);
{lexical.SCHEMA}
"""
_COLUMNS = (
    "partition, tenant, id, name_key, entity_type, conversation, workspace, speaker, speaker_key, role, "
    "position, session, occurred, updated, length, has_vector"
)


class EmbeddedIndex:
    """Implements SearchIndex. Safe for several threads and processes on one file; they all must use the same embedding model."""

    def __init__(self, path: Path, model_id: str, dimension: int) -> None:
        self._model_id = model_id
        self._dimension = dimension
        self._database = Database(path, self._prepare)
        self._database.read(lambda _: None)  # a mismatch shows when the index is built, not at the first turn

    def upsert(self, documents: Sequence[Document], *, at_once: bool = False) -> None:
        for document in documents:
            self._check(document.vector)
        if documents:
            self._database.write(lambda connection: _store_all(connection, documents))

    def delete(self, tenant_id: str, ids: Collection[str]) -> None:
        self._remove("tenant = ? AND id IN (SELECT value FROM json_each(?))", tenant_id, json.dumps(list(ids)))

    def delete_conversation(self, tenant_id: str, conversation_id: str) -> None:
        self._remove("tenant = ? AND conversation = ? AND conversation != ''", tenant_id, conversation_id)

    def delete_scope(self, tenant_id: str, scope: str | None) -> None:
        where = "tenant = ?" if scope is None else "tenant = ? AND scope = ?"
        bindings = (tenant_id,) if scope is None else (tenant_id, scope)
        self._remove(f"partition IN (SELECT id FROM partitions WHERE {where})", *bindings)  # noqa: S608 - one of two literals

    def search(self, query: Query) -> list[Candidate]:
        self._check(query.vector)
        return self._database.read(lambda connection: _search(connection, query))

    def stale(self, documents: Sequence[Document]) -> list[Document]:
        return self._database.read(lambda connection: [one for one in documents if not _is_current(connection, one)])

    def sample(self, count: int) -> list[Placed]:
        statement = """SELECT d.tenant, p.scope, p.kind, d.conversation, d.id, d.updated
            FROM documents d JOIN partitions p ON p.id = d.partition ORDER BY random() LIMIT ?"""
        found = self._database.read(lambda connection: rows(connection, statement, (count,)))
        return [Placed(tenant, scope, kind, conversation, id, moment(updated)) for tenant, scope, kind, conversation, id, updated in found]

    def _remove(self, where: str, *bindings: str) -> None:
        def work(connection: apsw.Connection) -> None:
            for (doc,) in rows(connection, f"SELECT doc FROM documents WHERE {where}", bindings):  # noqa: S608 - our own conditions
                _erase(connection, doc)

        self._database.write(work)

    def _check(self, vector: Sequence[float] | None) -> None:
        if vector is not None and len(vector) != self._dimension:
            raise IndexModelMismatchError(f"a vector of {len(vector)} dimensions for an index of {self._dimension} ({self._model_id})")

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.execute(_SCHEMA)
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS vectors USING vec0("
            f"partition INTEGER PARTITION KEY, embedding FLOAT[{self._dimension}] DISTANCE_METRIC=cosine, CHUNK_SIZE={_VECTOR_CHUNK})"
        )
        wanted = {"layout": _LAYOUT, "model_id": self._model_id, "dimension": str(self._dimension)}
        connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", wanted.items())
        stored: dict[str, str] = dict(rows(connection, "SELECT key, value FROM meta"))
        if stored != wanted:
            raise IndexModelMismatchError(f"the index was made with {stored}, and {wanted} is configured: rebuild it")


# Writing


def _store_all(connection: apsw.Connection, documents: Sequence[Document]) -> None:
    for document in documents:
        _store(connection, document)


def _store(connection: apsw.Connection, document: Document) -> None:
    partition = _partition(connection, document)
    key = (document.tenant_id, document.id)
    doc: int | None = None
    for doc, updated, place in rows(connection, "SELECT doc, updated, partition FROM documents WHERE tenant = ? AND id = ?", key):
        if updated > instant(document.updated_at):
            return
        _erase(connection, doc, keep_vector=document.vector is not None and place == partition)
    _insert(connection, document, partition, doc)


def _is_current(connection: apsw.Connection, document: Document) -> bool:
    found = rows(connection, "SELECT updated, has_vector FROM documents WHERE tenant = ? AND id = ?", (document.tenant_id, document.id))
    return any(updated >= instant(document.updated_at) and has_vector for updated, has_vector in found)


def _insert(connection: apsw.Connection, document: Document, partition: int, doc: int | None) -> None:
    vector = _packed(document.vector)
    row = (
        partition, document.tenant_id, document.id, name_key(document.name), document.entity_type, document.conversation_id,
        document.workspace_id, document.speaker, fold(document.speaker), document.role, document.position, document.session,
        instant(document.occurred_at), instant(document.updated_at), 0, vector is not None,
    )  # fmt: skip
    connection.execute(f"INSERT INTO documents (doc, {_COLUMNS}) VALUES (?{', ?' * len(row)})", (doc, *row))  # noqa: S608 - column names
    doc = connection.last_insert_rowid()
    length = lexical.add(connection, partition, doc, own_words(document), document.context)
    connection.execute("UPDATE documents SET length = ? WHERE doc = ?", (length, doc))
    connection.execute("UPDATE partitions SET documents = documents + 1, length = length + ? WHERE id = ?", (length, partition))
    if vector is not None:
        _write_vector(connection, partition, doc, vector)


def _write_vector(connection: apsw.Connection, partition: int, doc: int, vector: bytes) -> None:
    """In place where there is one: vec0 does not use the place of a deleted row again before its whole chunk is empty."""
    if rows(connection, "SELECT 1 FROM vectors WHERE rowid = ?", (doc,)):
        connection.execute("UPDATE vectors SET embedding = ? WHERE rowid = ?", (vector, doc))
    else:
        connection.execute("INSERT INTO vectors (rowid, partition, embedding) VALUES (?, ?, ?)", (doc, partition, vector))


def _erase(connection: apsw.Connection, doc: int, keep_vector: bool = False) -> None:
    lexical.remove(connection, doc)
    if not keep_vector:
        connection.execute("DELETE FROM vectors WHERE rowid = ?", (doc,))
    for partition, length in rows(connection, "DELETE FROM documents WHERE doc = ? RETURNING partition, length", (doc,)):
        connection.execute("UPDATE partitions SET documents = documents - 1, length = length - ? WHERE id = ?", (length, partition))


def _partition(connection: apsw.Connection, document: Document) -> int:
    key = (document.tenant_id, document.scope, document.kind)
    connection.execute("INSERT OR IGNORE INTO partitions (tenant, scope, kind) VALUES (?, ?, ?)", key)
    [(identity,)] = rows(connection, "SELECT id FROM partitions WHERE tenant = ? AND scope = ? AND kind = ?", key)
    return int(identity)


# Searching


def _search(connection: apsw.Connection, query: Query) -> list[Candidate]:
    statement = "SELECT id, documents, length FROM partitions WHERE tenant = ? AND scope = ? AND kind = ?"
    for partition, documents, length in rows(connection, statement, (query.tenant_id, query.scope, query.kind)):
        return _Search(connection, query, partition, documents, length).candidates()
    return []


class _Search:
    """One question to one partition. Each arm finds its own; then every document found gets what the other arm says of it."""

    def __init__(self, connection: apsw.Connection, query: Query, partition: int, documents: int, length: int) -> None:
        self._connection = connection
        self._query = query
        self._partition = partition
        self._vector = _packed(query.vector)
        self._question = lexical.question(connection, partition, query_words(query.text), documents, length)
        self._conditions, self._bindings = _filters(query, partition)

    def candidates(self) -> list[Candidate]:
        cosines, hits, named = self._nearest(), self._lexical(), self._named()
        found = {*cosines, *hits, *named}
        best = nlargest(self._query.neighbours_of, cosines, key=lambda doc: cosines[doc])
        best += nlargest(self._query.neighbours_of, hits, key=lambda doc: hits[doc].bm25)
        found |= self._neighbours(best)
        cosines |= self._cosines_of(found - cosines.keys())
        hits |= self._hits_of(found - hits.keys())
        return [_candidate(row, cosines.get(row[0]), hits.get(row[0]), row[0] in named) for row in self._described(found)]

    def _nearest(self) -> dict[int, float]:
        if self._vector is None:
            return {}
        allowed, bindings = self._allowed("rowid")
        found = self._rows(
            f"SELECT rowid, distance FROM vectors WHERE embedding MATCH ? AND k = ? AND partition = ? AND {allowed}",  # noqa: S608 - ours
            (self._vector, min(self._query.limit, _MOST_NEAREST), self._partition, *bindings),
        )
        return {doc: 1.0 - distance for doc, distance in found}

    def _cosines_of(self, docs: Collection[int]) -> dict[int, float]:
        if self._vector is None:
            return {}
        found = self._rows(
            "SELECT rowid, vec_distance_cosine(embedding, ?) FROM vectors WHERE rowid IN (SELECT value FROM json_each(?))",
            (self._vector, json.dumps(list(docs))),
        )
        return {doc: 1.0 - distance for doc, distance in found}

    def _lexical(self) -> dict[int, LexicalHit]:
        return self._question.search(self._connection, self._query.limit, *self._allowed("doc"))

    def _hits_of(self, docs: Collection[int]) -> dict[int, LexicalHit]:
        return self._question.search(self._connection, len(docs), "doc IN (SELECT value FROM json_each(?))", (json.dumps(list(docs)),))

    def _named(self) -> set[int]:
        if self._query.kind != "memory":
            return set()
        names = json.dumps(list(name_keys_in(self._query.text)))
        found = self._rows(
            f"SELECT doc FROM documents WHERE {self._conditions} AND name_key != '' "  # noqa: S608 - our own conditions
            "AND name_key IN (SELECT value FROM json_each(?)) LIMIT ?",
            (*self._bindings, names, self._query.limit),
        )
        return {doc for (doc,) in found}

    def _neighbours(self, docs: Iterable[int]) -> set[int]:
        reach = self._query.neighbours
        if reach <= 0:
            return set()
        found = self._rows(
            f"""SELECT near.doc FROM documents hit JOIN (SELECT * FROM documents WHERE {self._conditions}) near
            ON near.conversation = hit.conversation AND near.session = hit.session
            AND near.position BETWEEN hit.position - ? AND hit.position + ?
            WHERE hit.doc IN (SELECT value FROM json_each(?))""",  # noqa: S608 - our own conditions
            (*self._bindings, reach, reach, json.dumps(list(docs))),
        )
        return {doc for (doc,) in found}

    def _allowed(self, column: str) -> tuple[str, Sequence[Any]]:
        if len(self._bindings) == 1:
            return "1", ()
        return f"{column} IN (SELECT doc FROM documents WHERE {self._conditions})", self._bindings  # noqa: S608 - our own conditions

    def _described(self, docs: Iterable[int]) -> list[tuple[Any, ...]]:
        return self._rows(
            "SELECT doc, id, conversation, speaker, position, session, occurred, updated, length FROM documents "
            "WHERE doc IN (SELECT value FROM json_each(?))",
            (json.dumps(list(docs)),),
        )

    def _rows(self, statement: str, bindings: Sequence[Any]) -> list[tuple[Any, ...]]:
        return rows(self._connection, statement, bindings)


def _filters(query: Query, partition: int) -> tuple[str, list[Any]]:
    """The conditions of a question, as SQL over `documents` with its bindings; the partition alone when nothing is filtered."""
    filters: list[tuple[str, Any]] = [("partition = ?", partition)]
    if query.entity_types:
        filters.append(("entity_type IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.entity_types))))
    if query.conversation_ids:
        filters.append(("conversation IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.conversation_ids))))
    if query.speaker is not None:
        filters.append(("speaker_key = ?", fold(query.speaker)))
    if query.session is not None:
        filters.append(("session = ?", query.session))
    bounds = (("occurred >= ?", query.occurred_from), ("occurred < ?", query.occurred_to), ("updated >= ?", query.updated_from))
    filters += [(condition, instant(at)) for condition, at in bounds if at is not None]
    return " AND ".join(condition for condition, _ in filters), [binding for _, binding in filters]


def _candidate(row: tuple[Any, ...], cosine: float | None, hit: LexicalHit | None, named: bool) -> Candidate:
    _, identity, conversation, speaker, position, session, occurred, updated, length = row
    return Candidate(
        id=identity,
        cosine=cosine,
        bm25=hit.bm25 if hit else None,
        coverage=hit.coverage if hit else 0.0,
        name_match=named,
        conversation_id=conversation,
        speaker=speaker,
        position=position,
        session=session,
        occurred_at=moment(occurred),
        updated_at=moment(updated),
        length=length,
    )


def _packed(vector: Sequence[float] | None) -> bytes | None:
    """A vector as vec0 reads it. One of zeros has no direction: it counts as none."""
    return array("f", vector).tobytes() if vector is not None and any(vector) else None
