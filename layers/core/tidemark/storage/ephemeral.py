"""The table of short-lived things: idempotency records (kept by Powertools) and request counters."""

import time

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model


class Ephemeral(Model):
    class Meta:
        table_name = ""  # set by connect()
        region = "us-east-1"

    id = UnicodeAttribute(hash_key=True)
    expiration = NumberAttribute(null=True)
    used = NumberAttribute(null=True)


def connect(table_name: str, region: str) -> None:
    Ephemeral.Meta.table_name = table_name
    Ephemeral.Meta.region = region


def count_up(name: str, window_seconds: int) -> tuple[int, int]:
    """Counts one more in the present window; the count, and the seconds until the window ends."""
    now = time.time()
    window = int(now // window_seconds)
    counter = Ephemeral(f"rate#{name}#{window}")
    ends = (window + 1) * window_seconds
    counter.update(actions=[Ephemeral.used.add(1), Ephemeral.expiration.set(ends + window_seconds)])
    return int(counter.used or 1), max(1, int(ends - now + 0.999))


def delete(record_id: str) -> None:
    Ephemeral(record_id).delete()
