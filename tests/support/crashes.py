"""Killing a process between any two of its writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.support.world import new_process

WRITES = frozenset(
    ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem", "PutObject", "DeleteObjects", "SendMessage")
)


class Killed(BaseException):
    """The process is gone; nothing catches this."""


@contextmanager
def killed_at(patch: pytest.MonkeyPatch, number: int) -> Iterator[Callable[[], int]]:
    """Kills the process where it is about to make its `number`th write, and every later one: the dead write nothing.

    Yields how many writes there were.
    """
    count = 0
    call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def counting(self: Any, operation: str, arguments: Any) -> Any:
        nonlocal count
        if operation in WRITES:
            count += 1
            if count >= number:
                raise Killed(operation)
        return call(self, operation, arguments)

    with patch.context() as patched:
        patched.setattr(BaseClient, "_make_api_call", counting)
        yield lambda: count


def kills(patch: pytest.MonkeyPatch, operation: Callable[[], Any], recover: Callable[[int], None], most: int = 60) -> int:
    """Runs the operation, killed before its 1st, 2nd, ... write; after each kill a new process recovers. The number of its writes."""
    for number in range(1, most):
        new_process()
        try:
            with killed_at(patch, number):
                operation()
        except Killed:
            new_process()
            recover(number)
            continue
        return number - 1
    raise AssertionError(f"more than {most} writes")
