"""The index against the table: a new index built beside the one that serves, and a look, now and then, whether the two agree.

Both read the table's items as the stream's reader reads its records, and write only what the index lacks. So a pass may be repeated, and
one that was interrupted goes on.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from tidemark.clock import now
from tidemark.conversations.store import ConversationStore
from tidemark.memory.indexing import CHUNK, Indexing
from tidemark.memory.stream import Event, StreamIndexer
from tidemark.models.ports import Embedder, ModelError
from tidemark.observability import logger, metrics
from tidemark.search.documents import with_vectors
from tidemark.search.opensearch import TARGETS_SECONDS, OpenSearchIndex, Placed
from tidemark.search.port import Document, SearchUnavailableError
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.work import WorkQueue

PAGE = 100  # items of the table at a time
PASSES = 4  # over the table; each after the first finds only what was written in between
ON_ITS_WAY = timedelta(minutes=5)  # what changed so lately is the stream's reader's business
SAMPLE = 50  # documents that are looked for in the table at a time
_INDEXED = ("entity", "messages")


class Mending(Indexing):
    """Puts only what the index lacks, whole, and counts it."""

    def __init__(self, index: OpenSearchIndex, embedder: Callable[[], Embedder], settled: timedelta | None = None) -> None:
        super().__init__(lambda: index, embedder)
        self._mended, self._settled = index, settled
        self.seen = self.put_count = 0

    def put(self, documents: Sequence[Document], seconds: float = math.inf, *, at_once: bool = False) -> list[Document]:
        if self._settled is not None:
            documents = [one for one in documents if one.updated_at < now() - self._settled]
        self.seen += len(documents)
        stale = self._mended.stale(documents)
        for start in range(0, len(stale), CHUNK):
            self._mended.upsert(with_vectors(stale[start : start + CHUNK], self._embedder()), at_once=at_once)
        self.put_count += len(stale)
        return []


@dataclass(frozen=True, slots=True)
class Report:
    """What a rebuilding did."""

    index: str
    documents: int
    passes: int
    replaced: list[str]


class Reindex:
    def __init__(
        self,
        open_index: Callable[[str | None], OpenSearchIndex],
        embedder: Callable[[], Embedder],
        store: ConversationStore,
        queue: WorkQueue,
        say: Callable[[str], None] = print,
    ) -> None:
        """`open_index` gives the index of the configured model, or with a name the one of that name alone."""
        self._open, self._embedder, self._store, self._queue, self._say = open_index, embedder, store, queue, say

    def run(self, name: str | None = None, *, keep: bool = False, settle: float = TARGETS_SECONDS + 2) -> Report:
        """Builds a new index from the table, or goes on with `name`, and lets it serve. Writes may go on all the while: every writer
        knows of the new index within TARGETS_SECONDS, which is what `settle` waits for."""
        serving = self._open(None)
        if name is None:
            name = f"{serving.alias}.{now():%Y%m%d%H%M%S}"
            serving.create(name, serving=False)
            time.sleep(settle)
        building, documents, number = self._open(name), 0, 0
        for number in range(1, PASSES + 1):
            mending = Mending(building, self._embedder)
            for events in _pages():
                _apply(StreamIndexer(self._store, mending, self._queue), events)
            documents = mending.seen
            self._say(f"{name}: pass {number} read {mending.seen} documents and wrote {mending.put_count}")
            building.refresh()
            if mending.put_count == 0 or (number > 1 and mending.put_count < PAGE):
                break
        replaced = serving.serve(name)
        if not keep:
            serving.drop(replaced, settle)
        return Report(name, documents, number, replaced)


class Drift:
    """Compares a part of the table, and a sample of the index, at each call."""

    def __init__(self, index: OpenSearchIndex, embedder: Callable[[], Embedder], store: ConversationStore, queue: WorkQueue) -> None:
        self._index, self._store = index, store
        self._mending = Mending(index, embedder, ON_ITS_WAY)
        self._reader = StreamIndexer(store, self._mending, queue)

    def check(self, items: int = PAGE, sample: int = SAMPLE) -> int:
        """How many documents had to be repaired. None while the index or the embedder is away."""
        try:
            return self._check(items, sample)
        except (SearchUnavailableError, ModelError) as error:
            logger.warning("index not compared", error=type(error).__name__)
            return 0

    def _check(self, items: int, sample: int) -> int:
        before = self._mending.put_count
        cursor = table.get(keys.drift_cursor())
        found, after = table.scan(items, json.loads(cursor.data) if cursor is not None and cursor.data else None)
        _apply(self._reader, [event for event in map(_event, found) if event is not None])
        table.put(Item(*keys.drift_cursor(), data=json.dumps(after) if after else None))
        missing, orphans = self._mending.put_count - before, self._orphans(sample)
        metrics.add_metric("IndexRepaired", MetricUnit.Count, missing + orphans)
        if missing or orphans:
            logger.warning("index repaired", missing=missing, orphans=orphans)
        return missing + orphans

    def _orphans(self, sample: int) -> int:
        """Removes documents of the sample that the table does not know any more."""
        placed = [one for one in self._index.sample(sample) if one.updated < now() - ON_ITS_WAY]
        gone = self._unknown_entities(placed) + self._unknown_messages(placed)
        for one in gone:
            self._index.delete(one.tenant, [one.id])
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


def _pages() -> Iterator[list[Event]]:
    after: Mapping[str, Any] | None = None
    while True:
        found, after = table.scan(PAGE, after)
        yield [event for event in map(_event, found) if event is not None]
        if after is None:
            return


def _event(item: Item) -> Event | None:
    """An item as the stream tells of a new one."""
    if item.kind not in _INDEXED:
        return None
    return Event(f"{item.pk} {item.sk}", None, {"pk": item.pk, "sk": item.sk, "kind": item.kind, "data": item.data})


def _apply(reader: StreamIndexer, events: list[Event]) -> None:
    """What cannot be read is left out, as the stream's reader leaves it to its dead letters; it has been logged."""
    while events:
        failed = reader.apply(events)
        place = next((number for number, event in enumerate(events) if event.sequence == failed), len(events))
        events = events[place + 1 :]
