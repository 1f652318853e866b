"""Vectors by content: a text that was embedded once by a model is never embedded again."""

import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from tidemark.models.ports import Embedder

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (model TEXT, digest BLOB, vector BLOB, PRIMARY KEY (model, digest)) WITHOUT ROWID"
_BATCH = 64  # embedded and stored together, so that an interrupted run loses little


class CachedEmbedder:
    """Stands in front of another embedder. Several processes may share the file; losing it costs time only."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(_SCHEMA)

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def embed_query(self, text: str) -> list[float]:
        return self._cached("query", [text], lambda missing: [self._embedder.embed_query(missing[0])])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            vectors += self._cached("passage", texts[start : start + _BATCH], self._embedder.embed_passages)
        return vectors

    def _cached(self, use: str, texts: Sequence[str], embed: Callable[[Sequence[str]], list[list[float]]]) -> list[list[float]]:
        digests = [_digest(use, text) for text in texts]
        known = self._read(digests)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        if missing:
            fresh = dict(zip(missing, embed(list(missing.values())), strict=True))
            self._write(fresh)
            known |= fresh
        return [known[digest] for digest in digests]

    def _read(self, digests: Sequence[bytes]) -> dict[bytes, list[float]]:
        with self._connected() as connection:
            rows = connection.execute(
                f"SELECT digest, vector FROM vectors WHERE model = ? AND digest IN ({','.join('?' * len(digests))})",  # noqa: S608 - marks only
                (self.model_id, *digests),
            ).fetchall()
        return {digest: array("f", vector).tolist() for digest, vector in rows}

    def _write(self, vectors: dict[bytes, list[float]]) -> None:
        rows = [(self.model_id, digest, array("f", vector).tobytes()) for digest, vector in vectors.items()]
        with self._connected() as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, closing(sqlite3.connect(self._path, timeout=30)) as connection:
            yield connection


def _digest(use: str, text: str) -> bytes:
    return sha256(f"{use}\x00{text}".encode("utf-8", "surrogatepass")).digest()
