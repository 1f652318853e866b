"""The table of short-lived things: idempotency records (kept by Powertools) and the token buckets of rate limits."""

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.models import Model

MICROSECONDS = 1_000_000


class Ephemeral(Model):
    class Meta:
        table_name = ""  # set by connect()
        region = "us-east-1"

    id = UnicodeAttribute(hash_key=True)


class Bucket(Model):
    """A token bucket: the time, in microseconds since 1970, at which it will be full again. A bucket that is not there is full."""

    class Meta:
        table_name = ""  # set by connect()
        region = "us-east-1"
        # it stands in front of every request: better no limit for a moment than a wait
        connect_timeout_seconds = 1
        read_timeout_seconds = 3
        max_retry_attempts = 1

    id = UnicodeAttribute(hash_key=True)
    expiration = NumberAttribute(null=True)
    full_at = NumberAttribute(null=True)


def connect(table_name: str, region: str) -> None:
    for model in (Ephemeral, Bucket):
        model.Meta.table_name = table_name
        model.Meta.region = region


def delete(record_id: str) -> None:
    Ephemeral(record_id).delete()


def take(name: str, interval: int, span: int, at: int) -> tuple[bool, int]:
    """Takes a token out of a bucket that gets one back every `interval` and is filled in `span` (microseconds): whether there was one,
    and when the bucket will be full.

    One conditional write where the bucket is full, as it is for all but a burst; two in a burst; no write is lost or counted twice.
    """
    bucket = Bucket(f"rate#{name}")
    expires = Bucket.expiration.set((at + span) // MICROSECONDS + 60)
    try:
        is_full = Bucket.full_at.does_not_exist() | (Bucket.full_at < at)
        bucket.update([Bucket.full_at.set(at + interval), expires], condition=is_full)
    except UpdateError as exc:
        _need_condition_failure(exc)
    else:
        return True, at + interval
    try:
        bucket.update([Bucket.full_at.set(Bucket.full_at + interval), expires], condition=Bucket.full_at <= at + span - interval)
    except UpdateError as exc:
        _need_condition_failure(exc)
        bucket.refresh(consistent_read=True)
        return False, int(bucket.full_at or at)
    return True, int(bucket.full_at or at)


def _need_condition_failure(error: UpdateError) -> None:
    if error.cause_response_code != "ConditionalCheckFailedException":
        raise error
