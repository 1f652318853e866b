"""The index against the table: a look, now and then, whether the two agree, and what brings the index back where they do not.

Both here and where an index is built anew the table's items are read as the stream's reader reads its records, and only what the index
lacks is written. So a pass may be repeated, and one that was interrupted goes on.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidemark.clock import now
from tidemark.conversations.store import ConversationStore
from tidemark.memory.indexing import CHUNK, Indexing
from tidemark.memory.stream import Event, StreamIndexer
from tidemark.models.ports import Embedder, ModelError
from tidemark.observability import logger, measure
from tidemark.search.documents import with_vectors
from tidemark.search.port import Document, IndexModelMismatchError, Placed, SearchIndex, SearchUnavailableError
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.work import WorkQueue

ITEMS = 100  # of the table at a time
ON_ITS_WAY = timedelta(minutes=5)  # what changed so lately is the stream's reader's business
SAMPLE = 50  # documents that are looked for in the table at a time
_INDEXED = ("entity", "messages")


class Mending(Indexing):
    """Puts only what the index lacks, whole, and counts it."""

    def __init__(self, index: Callable[[], SearchIndex], embedder: Callable[[], Embedder], settled: timedelta | None = None) -> None:
        super().__init__(index, embedder)
        self._settled = settled
        self.seen = self.put_count = 0

    def put(self, documents: Sequence[Document], seconds: float = math.inf, *, at_once: bool = False) -> list[Document]:
        if self._settled is not None:
            documents = [one for one in documents if one.updated_at < now() - self._settled]
        self.seen += len(documents)
        stale = self._index().stale(documents)
        for start in range(0, len(stale), CHUNK):
            self._index().upsert(with_vectors(stale[start : start + CHUNK], self._embedder()), at_once=at_once)
        self.put_count += len(stale)
        return []


class Drift:
    """Compares a part of the table, and a sample of the index, at each call."""

    def __init__(
        self, index: Callable[[], SearchIndex], embedder: Callable[[], Embedder], store: ConversationStore, queue: WorkQueue
    ) -> None:
        self._index, self._store = index, store
        self._mending = Mending(index, embedder, ON_ITS_WAY)
        self._reader = StreamIndexer(store, self._mending, queue)

    def check(self, items: int = ITEMS, sample: int = SAMPLE) -> int:
        """How many documents had to be repaired; 0 while the index or the embedder is away."""
        try:
            return self._check(items, sample)
        except (SearchUnavailableError, IndexModelMismatchError, ModelError) as error:
            logger.warning("index not compared", error=type(error).__name__)
            return 0

    def _check(self, items: int, sample: int) -> int:
        before = self._mending.put_count
        cursor = table.get(keys.drift_cursor())
        found, after = table.scan(items, json.loads(cursor.data) if cursor is not None and cursor.data else None)
        apply(self._reader, [event for event in map(_event, found) if event is not None])
        table.put(Item(*keys.drift_cursor(), data=json.dumps(after) if after else None))
        missing, orphans = self._mending.put_count - before, self._orphans(sample)
        measure("IndexRepaired", missing + orphans)
        if missing or orphans:
            logger.warning("index repaired", missing=missing, orphans=orphans)
        return missing + orphans

    def _orphans(self, sample: int) -> int:
        """Removes documents of the sample that the table does not know any more."""
        placed = [one for one in self._index().sample(sample) if one.updated < now() - ON_ITS_WAY]
        gone = self._unknown_entities(placed) + self._unknown_messages(placed)
        for one in gone:
            self._index().delete(one.tenant, [one.id])
        return len(gone)

    @staticmethod
    def _unknown_entities(placed: Sequence[Placed]) -> list[Placed]:
        wanted = {(keys.memory(one.tenant, one.scope), f"{keys.ENTITIES}{one.id}"): one for one in placed if one.kind == "memory"}
        known = {(item.pk, item.sk) for item in table.get_many(list(wanted))}
        return [one for key, one in wanted.items() if key not in known]

    def _unknown_messages(self, placed: Sequence[Placed]) -> list[Placed]:
        by_tenant: dict[str, list[Placed]] = {}
        for one in placed:
            if one.kind == "message":
                by_tenant.setdefault(one.tenant, []).append(one)
        gone: list[Placed] = []
        for tenant_id, wanted in by_tenant.items():
            known = {message.id for message in self._store.messages(tenant_id, [(one.conversation, one.id) for one in wanted])}
            gone += [one for one in wanted if one.id not in known]
        return gone


def pages() -> Iterator[list[Event]]:
    after: Mapping[str, Any] | None = None
    while True:
        found, after = table.scan(ITEMS, after)
        yield [event for event in map(_event, found) if event is not None]
        if after is None:
            return


def _event(item: Item) -> Event | None:
    """An item as the stream tells of a new one."""
    if item.kind not in _INDEXED:
        return None
    return Event(f"{item.pk} {item.sk}", None, {"pk": item.pk, "sk": item.sk, "kind": item.kind, "data": item.data})


def apply(reader: StreamIndexer, events: list[Event]) -> None:
    """What cannot be read is left out, as the stream's reader leaves it to its dead letters; it has been logged."""
    while events:
        failed = reader.apply(events)
        place = next((number for number, event in enumerate(events) if event.sequence == failed), len(events))
        events = events[place + 1 :]
