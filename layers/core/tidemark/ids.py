"""Ids: a prefix that names the kind, and a ULID (48 bits of milliseconds, 80 random bits, Crockford base 32)."""

import re

from ulid import ULID

_FORM = re.compile(r"([a-z]{2,3})_([0-7][0-9A-HJKMNP-TV-Z]{25})")
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
KEY_LENGTH = 25  # digits of a message id that name the stored item; the last digit is the message's place in it
SLOTS = len(_DIGITS)


def new_id(prefix: str) -> str:
    return f"{prefix}_{ULID()}"


def is_id(value: str, prefix: str) -> bool:
    found = _FORM.fullmatch(value)
    return found is not None and found[1] == prefix


def new_item_key(after: str | None) -> str:
    """A fresh message item key (25 digits) that sorts behind `after`, whatever the clocks of the writers say."""
    fresh = str(ULID())[:KEY_LENGTH]
    return fresh if after is None or fresh > after else _successor(after)


def _successor(key: str) -> str:
    stem, last = key[:-1], key[-1]
    return _successor(stem) + _DIGITS[0] if last == _DIGITS[-1] else stem + _DIGITS[_DIGITS.index(last) + 1]


def message_id(item_key: str, slot: int) -> str:
    return f"msg_{item_key}{_DIGITS[slot]}"


def item_key(message: str) -> str:
    """The key of the stored item in which a message lies."""
    return message.removeprefix("msg_")[:KEY_LENGTH]


def slot(message: str) -> int:
    return _DIGITS.index(message[-1])
