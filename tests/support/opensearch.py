"""An OpenSearch for tests: the one that TIDEMARK_TEST_OPENSEARCH_URL names, else one of our own for the length of the run."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tidemark.search.opensearch import OpenSearchIndex, Options
from tidemark.search.opensearch_client import Endpoint, connect
from tidemark.search.port import Candidate, Document, Placed, Query

from infra.local import opensearch, processes
from infra.local.progress import Progress
from tests.support.world import World, world


@cache
def address() -> str:
    if named := os.environ.get("TIDEMARK_TEST_OPENSEARCH_URL"):
        return named
    folder = Path(tempfile.mkdtemp(prefix="tidemark-opensearch-"))
    folder.chmod(0o755)  # the server may run as another user
    server = opensearch.server(os.environ | {"TIDEMARK_STATE_DIR": str(folder)}, Progress())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    return server.start(processes.free_port(None))


def url() -> str:
    """Skips where no server can run, but never in CI."""
    reason = None if os.environ.get("TIDEMARK_TEST_OPENSEARCH_URL") else opensearch.missing(os.environ)
    if reason is None:
        return address()
    if os.environ.get("CI") or os.environ.get("TIDEMARK_REQUIRE_OPENSEARCH"):
        pytest.fail(f"CI must run this: {reason}")
    pytest.skip(reason)


class SeenAtOnce(OpenSearchIndex):
    """As if the second that a change takes to be seen had passed."""

    def upsert(self, documents: Sequence[Document], *, at_once: bool = True) -> None:
        super().upsert(documents, at_once=at_once)

    def search(self, query: Query) -> list[Candidate]:
        self.seen()
        return super().search(query)

    def stale(self, documents: Sequence[Document]) -> list[Document]:
        self.seen()
        return super().stale(documents)

    def sample(self, count: int) -> list[Placed]:
        self.seen()
        return super().sample(count)

    def seen(self) -> None:
        self._client.indices.refresh(index=self.pattern)


@contextmanager
def indexes(model: str, dimension: int, **options: Any) -> Iterator[SeenAtOnce]:
    """A prefix of its own, gone afterwards. The engine of vectors is TIDEMARK_TEST_OPENSEARCH_ENGINE."""
    options = {"engine": os.environ.get("TIDEMARK_TEST_OPENSEARCH_ENGINE") or "lucene", **options}
    client = connect(Endpoint.of(url()), "us-east-1")
    prefix = f"test-{uuid4().hex[:12]}"
    try:
        yield SeenAtOnce(client, model, dimension, Options(prefix=prefix, **options))
    finally:
        client.indices.delete(index=f"{prefix}.*")
        client.close()


@contextmanager
def searched_world(directory: Path, search: str, address: str | None = None) -> Iterator[World]:
    """An account of its own whose search is `embedded` or, under a prefix of its own, `opensearch`, asked at `address`. What is written
    is seen at once."""
    if search == "embedded":
        with world(directory) as made:
            yield made
        return
    prefix = f"test-{uuid4().hex[:12]}"
    with world(directory, TIDEMARK_SEARCH=search, TIDEMARK_OPENSEARCH_URL=address or url(), TIDEMARK_OPENSEARCH_PREFIX=prefix) as made:
        made.patch.setattr("tidemark.search.opensearch.OpenSearchIndex", SeenAtOnce)
        made.patch.setattr("tidemark.search.opensearch.SEARCH_SECONDS", 30.0)  # how fast a busy machine is, is not what is tested
        yield made
    drop(prefix)


def drop(prefix: str) -> None:
    client = connect(Endpoint.of(url()), "us-east-1")
    client.indices.delete(index=f"{prefix}.*")
    client.close()
