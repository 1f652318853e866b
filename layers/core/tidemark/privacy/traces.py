"""Where stored answers of Idempotency-Key lie, so that erasing a person or a conversation erases them too.

A trace is written before the answer is stored, beside the things that the request was about: whoever erases those finds it.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidemark.ids import is_id
from tidemark.storage import ephemeral, keys, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.table import Item
from tidemark.tenancy.caller import Caller

TRACES = "i#"
KEPT_SECONDS = 25 * 3600


def place(caller: Caller, event: Mapping[str, Any]) -> str:
    """The partition of what a request of a tenant is about: a conversation, a person, else the tenant itself."""
    parts = str(event["path"]).strip("/").split("/")
    if parts[:2] == ["v1", "conversations"] and len(parts) > 2 and is_id(parts[2], "cnv"):
        return keys.conversation(caller.tenant_id, parts[2])
    subject = caller.external_subject_id or _body_subject(event)
    return keys.memory(caller.tenant_id, keys.subject_scope(subject)) if subject else keys.answers(caller.tenant_id)


def _body_subject(event: Mapping[str, Any]) -> str | None:
    try:
        body = json.loads(event.get("body") or "{}")
    except (ValueError, RecursionError):
        return None  # no body of ours; the route will say so
    found = body.get("external_subject_id") or body.get("user") if isinstance(body, dict) else None
    return found if isinstance(found, str) else None


class Outcome(BaseModel):
    """What is known of a keyed request before its answer is stored: the turn that it started, or what it did."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str  # of the request; another one under the same key is another request
    turn_id: str | None = None
    result: dict[str, Any] | None = None


class Trace(BaseModel):
    """The keyed request that a context serves, and what an earlier try of it came to."""

    model_config = ConfigDict(frozen=True)

    partition: str
    record_id: str
    fingerprint: str
    earlier: Outcome | None = None

    def item(self, **outcome: Any) -> Item:
        """The trace with an outcome, to be written in the same transaction as what it tells of."""
        data = Outcome(fingerprint=self.fingerprint, **outcome).model_dump_json()
        ends = int(time.time()) + KEPT_SECONDS
        return Item(self.partition, f"{TRACES}{self.record_id}", kind="trace", data=data, ttl=ends)


CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def serving(partition: str | None, record_id: str, fingerprint: str) -> Iterator[None]:
    """While a keyed request is served: its trace is left, and an earlier try that died after its work is found."""
    trace = None
    if partition is not None:
        earlier = outcome_of(partition, record_id)
        same = earlier if earlier is not None and earlier.fingerprint == fingerprint else None
        trace = Trace(partition=partition, record_id=record_id, fingerprint=fingerprint, earlier=same)
        if same is None:
            table.put(trace.item())
    token = CURRENT.set(trace)
    try:
        yield
    finally:
        CURRENT.reset(token)


def earlier() -> Outcome | None:
    """What an earlier try of the present keyed request came to, if its worker died before the answer was stored."""
    trace = CURRENT.get()
    return trace.earlier if trace else None


def note_turn(turn_id: str) -> None:
    """Notes which turn the present keyed request starts."""
    trace = CURRENT.get()
    if trace is not None:
        table.put(trace.item(turn_id=turn_id))


def noted(result: dict[str, Any]) -> list[Item]:
    """What belongs into the transaction of a keyed request, so that a retry finds that it was done."""
    trace = CURRENT.get()
    return [trace.item(result=result)] if trace else []


def outcome_of(partition: str, record_id: str) -> Outcome | None:
    found = table.get((partition, f"{TRACES}{record_id}"))
    return found.read(Outcome) if found and found.data else None


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
