"""A secret that all functions share and nobody deploys: made at first use, kept in the table, which is encrypted at rest."""

import secrets
from contextlib import suppress

from pydantic import BaseModel

from tidemark.storage import table
from tidemark.storage.keys import PLATFORM
from tidemark.storage.table import Item, StaleError


class _Secret(BaseModel):
    value: str


def shared_secret(name: str) -> str:
    key = (f"{PLATFORM}#secrets", name)
    found = table.read(key, _Secret)
    if found is None:
        with suppress(StaleError):  # another function was first
            table.put(table.item(key, _Secret(value=secrets.token_urlsafe(32))), Item.pk.does_not_exist())
        found = table.read(key, _Secret)
    if found is None:
        raise LookupError(name)
    return found.value
