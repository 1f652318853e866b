"""moto copies whole tables for every transaction, so that it can take one back; nine tenths of a test's time went there.

A copy that shares what no write changes in place does the same.
"""

import copy
from collections import defaultdict
from threading import RLock
from typing import Any

import pytest
from botocore.client import BaseClient
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table


class SharingCopy:
    """Stands for the module `copy` in moto.dynamodb.models."""

    @staticmethod
    def deepcopy(thing: Any) -> Any:
        return _table(thing) if isinstance(thing, Table) else copy.deepcopy(thing)


def _table(table: Table) -> Table:
    kept = copy.copy(table)
    items: defaultdict[Any, Any] = defaultdict(dict)
    for key, found in table.items.items():
        items[key] = _item(found) if isinstance(found, Item) else {place: _item(item) for place, item in found.items()}
    kept.items = items
    if table.stream_shard is not None:
        kept.stream_shard = copy.copy(table.stream_shard)
        kept.stream_shard.table = kept
        kept.stream_shard.items = list(table.stream_shard.items)
    return kept


def _item(item: Item) -> Item:
    """An update sets attributes of an item; the values themselves stay as they are."""
    kept = copy.copy(item)
    kept.attrs = type(item.attrs)()
    dict.update(kept.attrs, item.attrs)
    return kept


def one_call_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """moto takes a refused transaction back by restoring whole tables, so calls of several threads must not overlap."""
    lock, call = RLock(), BaseClient._make_api_call  # type: ignore[attr-defined]

    def alone(self: Any, operation: str, arguments: Any) -> Any:
        with lock:
            return call(self, operation, arguments)

    patch.setattr(BaseClient, "_make_api_call", alone)
