"""The one DynamoDB table: its item, and how records are read from and written to it.

A record is a pydantic model, stored as JSON in `data`; what DynamoDB itself must see (keys, counters, versions, expiry) stands beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pydantic import BaseModel
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import DeleteError, PutError, TransactWriteError, UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from tidemark.errors import ConflictError

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

Key = tuple[str, str]


class ByOwner(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by_owner"
        projection = AllProjection()

    gsi1pk = UnicodeAttribute(hash_key=True)
    gsi1sk = UnicodeAttribute(range_key=True)


class ByTenant(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by_tenant"
        projection = AllProjection()

    gsi2pk = UnicodeAttribute(hash_key=True)
    gsi2sk = UnicodeAttribute(range_key=True)


class ByDue(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by_due"
        projection = AllProjection()

    gsi3pk = UnicodeAttribute(hash_key=True)
    gsi3sk = UnicodeAttribute(range_key=True)


class Item(Model):
    class Meta:
        table_name = ""  # set by connect()
        region = "us-east-1"
        max_retry_attempts = 5

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    kind = UnicodeAttribute(null=True)  # what the stream's reader looks at
    data = UnicodeAttribute(null=True)
    version = NumberAttribute(null=True)
    ttl = NumberAttribute(null=True)

    gsi1pk = UnicodeAttribute(null=True)
    gsi1sk = UnicodeAttribute(null=True)
    gsi2pk = UnicodeAttribute(null=True)
    gsi2sk = UnicodeAttribute(null=True)
    gsi3pk = UnicodeAttribute(null=True)
    gsi3sk = UnicodeAttribute(null=True)
    by_owner = ByOwner()
    by_tenant = ByTenant()
    by_due = ByDue()

    # counters that change without a new version
    access_count = NumberAttribute(default=0, null=True)
    accessed_at = UnicodeAttribute(null=True)
    turns = NumberAttribute(null=True)
    input_tokens = NumberAttribute(null=True)
    output_tokens = NumberAttribute(null=True)
    messages = NumberAttribute(null=True)
    memories = NumberAttribute(null=True)

    def read(self, model: type[M]) -> M:
        return model.model_validate_json(self.data)


class StaleError(Exception):
    """A condition of a write did not hold: somebody else wrote first. Nothing of the write took place."""


def retried(attempt: Callable[[], T], refusal: str, attempts: int) -> T:
    """Does a change again from what the other writer left, as often as `attempts`. `attempt` reads, then writes on a condition, and does
    nothing else. Raises ConflictError with `refusal` when others always were first."""
    for _ in range(attempts):
        with suppress(StaleError):
            return attempt()
    raise ConflictError(refusal)


def connect(table_name: str, region: str) -> None:
    """Names the table for this process."""
    Item.Meta.table_name = table_name
    Item.Meta.region = region


def item(key: Key, record: BaseModel | None, **attributes: Any) -> Item:
    return Item(key[0], key[1], data=None if record is None else record.model_dump_json(), **attributes)


def get(key: Key) -> Item | None:
    """One item as the last completed write left it."""
    try:
        return Item.get(key[0], key[1], consistent_read=True)
    except Item.DoesNotExist:
        return None


def read(key: Key, model: type[M]) -> M | None:
    found = get(key)
    return None if found is None else found.read(model)


def get_many(keys: Sequence[Key]) -> list[Item]:
    """Those of the items that exist, in no order."""
    return list(Item.batch_get(list(dict.fromkeys(keys)), consistent_read=True)) if keys else []


def put(new: Item, condition: Condition | None = None) -> None:
    with _conditions():
        new.save(condition=condition, add_version_condition=False)


def delete(key: Key, condition: Condition | None = None) -> None:
    with _conditions():
        Item(key[0], key[1]).delete(condition=condition, add_version_condition=False)


def update(found: Item, actions: Sequence[Action], condition: Condition) -> None:
    """Changes attributes of an item. Raises StaleError."""
    with _conditions():
        found.update(actions=list(actions), condition=condition, add_version_condition=False)


def query(pk: str, prefix: str = "", *, newest_first: bool = False, limit: int | None = None) -> Iterator[Item]:
    """Items of one partition whose sort key begins with `prefix`, in key order."""
    condition = Item.sk.startswith(prefix) if prefix else None
    return iter(Item.query(pk, condition, consistent_read=True, scan_index_forward=not newest_first, limit=limit))


def delete_partition(pk: str, prefix: str = "") -> int:
    """Deletes what query() finds; safe to repeat after a crash."""
    count = 0
    with Item.batch_write() as batch:
        for found in query(pk, prefix):
            batch.delete(found)
            count += 1
    return count


def scan(limit: int, after: Mapping[str, Any] | None = None) -> tuple[list[Item], dict[str, Any] | None]:
    """The next `limit` items of the whole table, in no order, each partition's together; and where to go on, None at the end."""
    found = Item.scan(limit=limit, page_size=limit, last_evaluated_key=dict(after) if after else None, consistent_read=True)
    items = list(found)
    return items, dict(found.last_evaluated_key) if found.last_evaluated_key else None


def newest(
    owner: str | None, tenant: str, model: type[M], accept: Callable[[M], bool], limit: int, before: str | None
) -> tuple[list[M], bool]:
    """Records of an owner's list, or without one of the whole tenant's, in falling order of their index keys; and whether there are more.

    `owner` and `tenant` are the lists' partition keys in by_owner and by_tenant, `before` the index key behind which it goes on.
    """
    index: GlobalSecondaryIndex[Item] = Item.by_tenant if owner is None else Item.by_owner
    attribute = Item.gsi2sk if owner is None else Item.gsi1sk
    found: list[M] = []
    for one in index.query(owner or tenant, attribute < before if before else None, scan_index_forward=False):
        record = one.read(model)
        if accept(record):
            found.append(record)
        if len(found) > limit:
            break
    return found[:limit], len(found) > limit


@contextmanager
def transaction() -> Iterator[TransactWrite]:
    """All writes inside happen, or none. Raises StaleError when a condition fails."""
    # the model's own connection: a new one would build a client and open TLS for every transaction
    with _conditions(), TransactWrite(connection=Item._get_connection().connection) as write:
        yield write


@contextmanager
def _conditions() -> Iterator[None]:
    try:
        yield
    except (PutError, UpdateError, DeleteError, TransactWriteError) as exc:
        if exc.cause_response_code in ("ConditionalCheckFailedException", "TransactionCanceledException", "TransactionConflictException"):
            raise StaleError from exc
        raise


def page(
    pk: str, model: type[M], limit: int, after: str | None, *, prefix: str = "", newest_first: bool = False
) -> tuple[list[M], str | None]:
    """Records of a partition in key order, behind the sort key `after`; and the sort key to go on from."""
    low, high = prefix, f"{prefix}\U0010ffff"
    if after is not None:
        low, high = (prefix, after) if newest_first else (after, high)
    condition = Item.sk.between(low or "\x01", high)
    found = Item.query(pk, condition, consistent_read=True, scan_index_forward=not newest_first, limit=limit + 2)
    items = [one for one in found if one.sk != after][: limit + 1]
    records = [one.read(model) for one in items[:limit]]
    return records, items[limit - 1].sk if len(items) > limit else None
