"""Lists in pages: opaque cursors that are good only for the list that gave them out."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from tidemark.errors import MalformedError

T = TypeVar("T")

PAGE_BYTES = 4_000_000  # a page ends early where its body would pass this


class Page(BaseModel, Generic[T]):
    items: list[T]
    next_cursor: str | None = None


class Cursors:
    """Signs where a list goes on together with what the list is of (tenant, route, filters), so that no cursor fits another list."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def _mac(self, payload: bytes, of: tuple[Any, ...]) -> bytes:
        bound = json.dumps(of, default=str, sort_keys=True).encode()
        return hmac.digest(self._secret, hashlib.sha256(bound).digest() + payload, "sha256")[:16]

    def write(self, place: str, *of: Any) -> str:
        payload = place.encode()
        return base64.urlsafe_b64encode(self._mac(payload, of) + payload).rstrip(b"=").decode()

    def read(self, cursor: str | None, *of: Any) -> str | None:
        """Where to go on, None for the beginning. Raises MalformedError for a cursor that this list did not give out."""
        if cursor is None:
            return None
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            mac, payload = raw[:16], raw[16:]
            if cursor.isascii() and hmac.compare_digest(mac, self._mac(payload, of)):
                return payload.decode()
        except (binascii.Error, ValueError):
            pass
        raise MalformedError("This cursor is not one of this list.", code="invalid_cursor")

    def page(self, cursor: str | None, of: tuple[Any, ...], read: Callable[[str | None], tuple[list[T], str | None]]) -> Page[T]:
        """The page of a list that begins at a cursor. `read` gives the items behind a place and, where there are more, the next place.

        Raises MalformedError for a cursor that this list did not give out.
        """
        items, more = read(self.read(cursor, *of))
        return Page(items=items, next_cursor=self.write(more, *of) if more else None)


def fitting(items: list[T], size: Callable[[T], int]) -> list[T]:
    """As many of the items as a page's body may hold, at least one."""
    total = 0
    for count, item in enumerate(items):
        total += size(item)
        if total > PAGE_BYTES and count:
            return items[:count]
    return items
