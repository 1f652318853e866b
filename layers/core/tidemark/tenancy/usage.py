"""What a tenant used, per day in UTC. Counted beside the work and best effort: a lost count never fails what it counts."""

from datetime import datetime

from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.update import Action

from tidemark.clock import now
from tidemark.observability import logger, where
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.tenancy.model import UsageDay

COUNTERS = ("turns", "input_tokens", "output_tokens", "memories", "messages")


def add(tenant_id: str, at: datetime | None = None, **counts: int) -> None:
    day = Item(keys.usage(tenant_id), (at or now()).date().isoformat())
    actions: list[Action] = [getattr(Item, name).add(count) for name, count in counts.items() if count]
    if not actions:
        return
    try:
        day.update(actions=actions)
    except PynamoDBException as exc:
        logger.warning("usage not counted", error=type(exc).__name__, where=where(exc))


def days(tenant_id: str) -> list[UsageDay]:
    """Newest first, the last 366."""
    found = table.query(keys.usage(tenant_id), newest_first=True, limit=366)
    return [UsageDay(date=day.sk, **{name: int(getattr(day, name) or 0) for name in COUNTERS}) for day in found]
