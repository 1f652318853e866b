"""A new index built from the table beside the one that serves, while writes and searches go on."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.clock import now
from tidemark.conversations.store import ConversationStore
from tidemark.memory.drift import ITEMS, Mending, apply, pages
from tidemark.memory.stream import StreamIndexer
from tidemark.models.ports import Embedder
from tidemark.search.opensearch import TARGETS_SECONDS, OpenSearchIndex
from tidemark.work import WorkQueue

PASSES = 4  # over the table; each after the first finds only what was written in between


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
            mending = Mending(lambda: building, self._embedder)
            for events in pages():
                apply(StreamIndexer(self._store, mending, self._queue), events)
            documents = mending.seen
            self._say(f"{name}: pass {number} read {mending.seen} documents and wrote {mending.put_count}")
            building.refresh()
            if mending.put_count == 0 or (number > 1 and mending.put_count < ITEMS):
                break
        replaced = serving.serve(name)
        if not keep:
            serving.drop(replaced, settle)
        return Report(name, documents, number, replaced)
