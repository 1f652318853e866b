"""How many requests a key or user may make, and all of a tenant together: a token bucket each.

A bucket holds a minute's requests and fills evenly, so a burst of a whole minute's worth passes and the mean is kept. The limit is no
access control: where its table cannot be reached, requests pass without it.
"""

from dataclasses import dataclass

from pynamodb.exceptions import PynamoDBException

from tidemark.clock import now
from tidemark.observability import logger, where
from tidemark.storage import ephemeral, keys
from tidemark.tenancy.caller import Caller

REQUESTS_PER_MINUTE = 6000  # of a key that was made without a quota of its own, and of a dashboard user
WINDOW_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Quota:
    """A bucket's name and the requests that it allows a minute (1 to 1,000,000)."""

    name: str
    requests: int

    @property
    def interval(self) -> int:
        """Microseconds after which one request more is allowed."""
        return WINDOW_SECONDS * ephemeral.MICROSECONDS // self.requests

    @property
    def span(self) -> int:
        """Microseconds in which an empty bucket fills."""
        return self.interval * self.requests


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left after a request. `retry_after` is set where it was refused: seconds until one more is allowed."""

    remaining: int
    resets: int  # seconds until all of the quota is there again
    retry_after: int | None = None


def standing(quota: Quota, taken: bool, full_at: int, at: int) -> Standing:
    """How a bucket stands that will be full at a time (microseconds)."""
    missing = max(0, full_at - at)
    remaining = max(0, quota.span - missing) // quota.interval
    if taken:
        return Standing(remaining, _seconds(missing))
    return Standing(0, _seconds(missing), _seconds(missing - quota.span + quota.interval))


def _seconds(microseconds: int) -> int:
    return max(1, -(-microseconds // ephemeral.MICROSECONDS))


def quota_of(caller: Caller) -> Quota:
    """The bucket of a key or user. A user's id comes from outside and enters its name only as a digest."""
    own = keys.digest(caller.tenant_id, caller.kind, caller.id)
    return Quota(f"caller#{own}", caller.requests_per_minute or REQUESTS_PER_MINUTE)


def take(caller: Caller, tenant_requests: int) -> Standing | None:
    """Counts one request against its key or user, then against its tenant. None where the buckets cannot be reached.

    What its own bucket refuses costs the tenant nothing, so a key that runs wild does not use up what the others have.
    """
    at = round(now().timestamp() * ephemeral.MICROSECONDS)
    quotas = [quota_of(caller)]
    if caller.tenant_id:
        quotas.append(Quota(f"tenant#{caller.tenant_id}", tenant_requests))
    found: list[Standing] = []
    try:
        for quota in quotas:
            found.append(standing(quota, *ephemeral.take(quota.name, quota.interval, quota.span, at), at))
            if found[-1].retry_after is not None:
                return found[-1]
    except PynamoDBException as exc:
        logger.warning("rate limit not checked", error=type(exc).__name__, where=where(exc))
        return None
    return min(found, key=lambda one: one.remaining)
