"""Durability that the emulator lacks. Runs inside the emulator's own virtual environment.

Ministack writes its state on a clean stop only, and not at all the records of table streams that no function has read yet. Here
every write to a table is appended to a journal before it is answered, and played back after the last snapshot at the next start:
what was accepted survives `kill -9`, and its stream record is delivered at least once. Not fsynced: a crash of the machine may lose
the last moments.
"""

import json
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

LONG_BYTES = 128 * 1024 * 1024  # a few seconds to play back

Item = dict[str, Any]
_Emit = Callable[..., None]

# Lines of the request being handled: a transaction is written whole or not at all.
_pending: ContextVar[list[str] | None] = ContextVar("journal_pending", default=None)


class Journal:
    def __init__(self, path: Path, dynamodb: Any, functions: Any) -> None:
        self._path = path
        self._dynamodb = dynamodb
        self._functions = functions
        self._emit: _Emit = dynamodb._emit_stream_event
        self._lock = threading.Lock()
        self._file = self._open()
        handle = dynamodb.handle_request

        async def handle_request(*request: Any, **named: Any) -> Any:
            lines: list[str] = []
            token = _pending.set(lines)
            try:
                return await handle(*request, **named)
            finally:
                _pending.reset(token)
                self._append(lines)

        dynamodb._emit_stream_event = self._written
        dynamodb.handle_request = handle_request

    def replay(self) -> int:
        """After the snapshot was loaded. Writes that the snapshot already holds are played again, in order, to the same end."""
        positions = self._functions._dynamodb_stream_positions
        # The snapshot keeps positions but not the records they count, so that a stream would stay silent until as many were new.
        for mapping in list(positions._data):
            positions._data[mapping] = 0
        played = 0
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                break  # the line that the crash cut short; it was never answered
            played += self._play(entry)
        return played

    def is_long(self) -> bool:
        return self._path.stat().st_size > LONG_BYTES

    def restart(self) -> None:
        """Begin anew after a snapshot, with only the stream records that nobody has read."""
        with self._lock:
            fresh = self._path.with_suffix(".new")
            fresh.write_text("".join(self._unread()), encoding="utf-8")
            os.replace(fresh, self._path)
            os.close(self._file)
            self._file = self._open()

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _append(self, lines: list[str]) -> None:
        if lines:
            with self._lock:
                os.write(self._file, "".join(lines).encode())

    def _written(self, table: str, event: str, old: Item | None, new: Item | None, replicate: bool = True) -> None:
        line = json.dumps({"table": table, "event": event, "old": old, "new": new}) + "\n"
        lines = _pending.get()
        if lines is None:
            self._append([line])
        else:
            lines.append(line)
        self._emit(table, event, old, new, replicate)

    def _play(self, entry: dict[str, Any]) -> bool:
        table = self._dynamodb._tables.get(entry["table"])
        if table is None:
            return False
        old, new = entry["old"], entry["new"]
        if not entry.get("read_only"):
            partition, sort = self._dynamodb._resolve_table_key_values(table, new or old, True)[:2]
            if new is None:
                self._dynamodb._remove_item(table, partition, sort)
            else:
                self._dynamodb._set_item(table, partition, sort, new)
        self._emit(entry["table"], entry["event"], old, new, False)
        return True

    def _unread(self) -> list[str]:
        read: dict[str, int] = {}
        for key, mapping in self._functions._esms._data.items():
            source = mapping.get("EventSourceArn", "")
            if ":dynamodb:" in source:
                table = source.split(":table/")[1].split("/")[0]
                at = self._functions._dynamodb_stream_positions._data.get(key, 0)
                read[table] = min(at, read.get(table, at))
        lines = []
        for table, position in read.items():
            for record in self._dynamodb.stream_records_since(table, position, 1_000_000):
                images = record["dynamodb"]
                entry = {"table": table, "event": record["eventName"], "old": images.get("OldImage"), "new": images.get("NewImage")}
                lines.append(json.dumps(entry | {"read_only": True}) + "\n")
        return lines
