"""Sittings: a conversation that rests for hours and goes on is the same conversation in another session ("what did we say in our third
session?")."""

from datetime import datetime, timedelta

GAP = timedelta(hours=3)


def sitting(current: int, last_message_at: datetime | None, at: datetime) -> int:
    """The number, from 1, of the sitting in which a message at `at` lies, behind one at `last_message_at` in `current`."""
    if last_message_at is None:
        return 1
    return current + 1 if at - last_message_at > GAP else max(current, 1)
