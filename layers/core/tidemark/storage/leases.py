"""Leases: one worker at a time, across functions, until it lets go or its time runs out."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import uuid4

from tidemark.clock import iso, now
from tidemark.storage import table
from tidemark.storage.table import Item, Key, StaleError


@contextmanager
def lease(key: Key, lasts: timedelta) -> Iterator[bool]:
    """Yields whether the lease is ours; what is left by a worker that died is taken over when its time has run out."""
    holder, at = uuid4().hex, now()
    mine = Item(key[0], key[1], kind="lease", data=holder, ttl=int((at + lasts).timestamp()) + 3600, accessed_at=iso(at + lasts))
    try:
        table.put(mine, Item.pk.does_not_exist() | (Item.accessed_at < iso(at)))
    except StaleError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(StaleError):
            table.delete(key, Item.data == holder)


def held(key: Key) -> bool:
    found = table.get(key)
    return found is not None and (found.accessed_at or "") > iso(now())
