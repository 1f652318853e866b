"""One SQLite file that several threads and processes read and write at once."""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import sqlite_vec  # type: ignore[import-untyped]

from tidemark.search.port import SearchUnavailableError

T = TypeVar("T")

_BUSY_MS = 10_000  # how long a writer waits for another one
_ATTEMPTS = 4  # a busy snapshot or a recovery in another process passes within milliseconds
_PAUSE_SECONDS = 0.05

# Connections that a fork carried into a child. Closing one there could roll back or checkpoint the parent's log, so they are kept.
_inherited: list[apsw.Connection] = []


class Database:
    """Gives each thread of each process a connection of its own, made ready by `prepare`."""

    def __init__(self, path: Path, prepare: Callable[[apsw.Connection], None]) -> None:
        self._path = path
        self._prepare = prepare
        self._local = threading.local()

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` on one snapshot."""
        return self._attempt("BEGIN", work)

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` in one transaction: all of it is seen, or none. It may run again, so it must not act outside of the database."""
        return self._attempt("BEGIN IMMEDIATE", work)

    def _attempt(self, begin: str, work: Callable[[apsw.Connection], T]) -> T:
        for remaining in reversed(range(_ATTEMPTS)):
            try:
                return _in_transaction(self._connection(), begin, work)
            except (apsw.BusyError, apsw.LockedError) as error:
                if not remaining:
                    raise SearchUnavailableError("the index is busy") from error
                time.sleep(_PAUSE_SECONDS * (1 + random.random()))  # noqa: S311 - spreads the writers
            except (apsw.Error, OSError) as error:
                raise SearchUnavailableError(f"the index cannot be used: {type(error).__name__}") from error
        raise AssertionError("unreachable")

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and self._local.process != os.getpid():
            _inherited.append(connection)
            connection = None
        if connection is None:
            connection = self._opened()
            self._local.connection, self._local.process = connection, os.getpid()
        return connection

    def _opened(self) -> apsw.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = apsw.Connection(str(self._path))
        connection.set_busy_timeout(_BUSY_MS)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
        _in_transaction(connection, "BEGIN IMMEDIATE", self._prepare)
        return connection


def _in_transaction(connection: apsw.Connection, begin: str, work: Callable[[apsw.Connection], T]) -> T:
    connection.execute(begin)
    try:
        answer = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return answer


def rows(connection: apsw.Connection, statement: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """What a statement answers. Our statements are made of our own words; what comes from outside is always bound."""
    return list(connection.execute(statement, bindings))
