"""Where stored answers of Idempotency-Key lie, so that erasing a person or a conversation erases them too.

A trace is written before the answer is stored, beside the things that the request was about: whoever erases those finds it.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tidemark.ids import is_id
from tidemark.storage import ephemeral, keys, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.table import Item
from tidemark.tenancy.caller import Caller

TRACES = "i#"
KEPT_SECONDS = 25 * 3600


def place(caller: Caller, event: Mapping[str, Any]) -> str | None:
    """The partition of what a request is about; None where it is about no person."""
    parts = str(event["path"]).strip("/").split("/")
    if parts[:2] == ["v1", "conversations"] and len(parts) > 2 and is_id(parts[2], "cnv"):
        return keys.conversation(caller.tenant_id, parts[2])
    subject = caller.external_subject_id or _body_subject(event)
    return keys.memory(caller.tenant_id, keys.subject_scope(subject)) if subject else None


def _body_subject(event: Mapping[str, Any]) -> str | None:
    try:
        body = json.loads(event.get("body") or "{}")
    except (ValueError, RecursionError):
        return None  # no body of ours; the route will say so
    found = body.get("external_subject_id") or body.get("user") if isinstance(body, dict) else None
    return found if isinstance(found, str) else None


CURRENT: ContextVar[tuple[str, str] | None] = ContextVar("trace", default=None)  # of the keyed request that this context serves


@contextmanager
def serving(partition: str | None, record_id: str) -> Iterator[None]:
    """While a keyed request is served, so that the turn that it starts can be named beside its trace."""
    token = CURRENT.set((partition, record_id) if partition else None)
    try:
        yield
    finally:
        CURRENT.reset(token)


def name_turn(turn_id: str) -> None:
    """Notes which turn the present keyed request started, for a retry that comes while it runs."""
    found = CURRENT.get()
    if found is not None:
        leave(*found, turn_id=turn_id)


def named_turn(partition: str, record_id: str) -> str | None:
    found = table.get((partition, f"{TRACES}{record_id}"))
    return found.data if found else None


def leave(partition: str, record_id: str, turn_id: str | None = None) -> None:
    table.put(Item(partition, f"{TRACES}{record_id}", kind="trace", data=turn_id, ttl=int(time.time()) + KEPT_SECONDS))


def blob_key(owner: str, record_id: str) -> str:
    """Where an answer lies that is too large for an item; the owner's prefix erases it with all else of the tenant."""
    return f"{owner}/answers/{record_id}"


def erase(tenant_id: str, partition: str, blobs: Blobs) -> int:
    """Deletes the stored answers that a partition's traces lead to; safe to repeat."""
    count = 0
    for trace in table.query(partition, TRACES):
        record_id = trace.sk.removeprefix(TRACES)
        blobs.delete_prefix(blob_key(tenant_id, record_id))
        ephemeral.delete(record_id)
        table.delete((partition, trace.sk))
        count += 1
    return count
