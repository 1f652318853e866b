"""The token buckets of a key and of its tenant, on a clock that stands until a test moves it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError
from tidemark.tenancy import rate_limits

from tests.support.fast_moto import one_call_at_a_time
from tests.support.world import EPHEMERAL, Answer, Client, World, new_process

TENANT_QUOTA = 6000


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 5, 4, 12, 0, 0, 1000, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def forward(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock(aws: World) -> Clock:
    made = Clock()
    aws.patch.setattr(rate_limits, "now", made.now)
    return made


def limited(aws: World, tenant: str, quota: int, name: str = "key_a") -> Client:
    made = aws.key(tenant, "ada")
    return Client(aws, made.caller.model_copy(update={"requests_per_minute": quota, "id": name}), made.query)


def ask(client: Client, times: int = 1) -> list[Answer]:
    return [client.send("GET", "/v1/conversations") for _ in range(times)]


def statuses(answers: list[Answer]) -> list[int]:
    return [answer.status for answer in answers]


def test_a_burst_of_a_minute_s_worth_passes_and_the_next_is_told_when_to_come(aws: World, clock: Clock) -> None:
    key = limited(aws, aws.tenant(), 3)
    *passed, refused = ask(key, 4)
    assert statuses(passed) == [200, 200, 200]
    assert [answer.headers["ratelimit"] for answer in passed] == ['"default";r=2;t=20', '"default";r=1;t=40', '"default";r=0;t=60']
    assert {answer.headers["ratelimit-policy"] for answer in [*passed, refused]} == {'"default";q=3;w=60'}
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "20")
    assert refused.headers["ratelimit"] == '"default";r=0;t=60'


def test_a_bucket_fills_evenly(aws: World, clock: Clock) -> None:
    key = limited(aws, aws.tenant(), 3)
    ask(key, 3)
    clock.forward(19)
    assert ask(key)[0].headers["retry-after"] == "1"
    clock.forward(1)
    assert statuses(ask(key, 2)) == [200, 429]
    clock.forward(60)
    assert statuses(ask(key, 4)) == [200, 200, 200, 429]


def test_an_hour_of_rest_saves_no_more_than_a_minute(aws: World, clock: Clock) -> None:
    key = limited(aws, aws.tenant(), 2)
    ask(key)
    clock.forward(3600)
    assert statuses(ask(key, 3)) == [200, 200, 429]


def test_a_key_that_runs_wild_takes_nothing_from_another(aws: World, clock: Clock) -> None:
    tenant = aws.tenant()
    wild, calm, stranger = limited(aws, tenant, 2), limited(aws, tenant, 2, "key_b"), limited(aws, aws.tenant(), 2)
    assert statuses(ask(wild, 5)) == [200, 200, 429, 429, 429]
    assert statuses(ask(calm, 2)) == [200, 200]
    assert statuses(ask(stranger, 2)) == [200, 200]


def drain(tenant: str, requests: int, at: datetime) -> None:
    """Leaves a tenant's bucket as that many requests in this moment would."""
    quota = rate_limits.Quota(f"tenant#{tenant}", TENANT_QUOTA)
    start = round(at.timestamp() * 1_000_000)
    boto3.resource("dynamodb").Table(EPHEMERAL).put_item(Item={"id": f"rate#{quota.name}", "full_at": start + requests * quota.interval})


def test_all_keys_of_a_tenant_share_its_bucket_and_other_tenants_have_their_own(aws: World, clock: Clock) -> None:
    aws.patch.setenv("TIDEMARK_TENANT_REQUESTS_PER_MINUTE", str(TENANT_QUOTA))
    new_process()
    tenant, other = aws.tenant(), aws.tenant()
    drain(tenant, TENANT_QUOTA - 3, clock.at)
    one, two = limited(aws, tenant, 100), limited(aws, tenant, 100, "key_b")
    assert statuses(ask(one, 2) + ask(two, 2)) == [200, 200, 200, 429]
    assert ask(two)[0].headers["ratelimit"].startswith('"default";r=0;')
    assert statuses(ask(limited(aws, other, 100), 3)) == [200, 200, 200]
    clock.forward(0.02)
    assert statuses(ask(two)) == [200]


def test_parallel_requests_get_exactly_what_the_bucket_holds(aws: World, clock: Clock) -> None:
    one_call_at_a_time(aws.patch)
    key = limited(aws, aws.tenant(), 10)
    key.get("/v1/conversations")
    with ThreadPoolExecutor(8) as pool:
        standings = list(pool.map(lambda _: rate_limits.take(key.caller, TENANT_QUOTA), range(24)))
    passed = [one.remaining for one in standings if one is not None and one.retry_after is None]
    assert sorted(passed) == list(range(9))
    assert len(standings) - len(passed) == 15


def test_trouble_with_the_buckets_takes_no_request_down(aws: World, clock: Clock) -> None:
    key = limited(aws, aws.tenant(), 3)
    call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def away(self: Any, operation: str, arguments: Any) -> Any:
        if arguments.get("TableName") == EPHEMERAL:
            raise EndpointConnectionError(endpoint_url="dynamodb")
        return call(self, operation, arguments)

    aws.patch.setattr(BaseClient, "_make_api_call", away)
    answers = ask(key, 5)
    assert statuses(answers) == [200] * 5
    assert answers[0].headers["ratelimit-policy"] == '"default";q=3;w=60'
    assert "ratelimit" not in answers[0].headers


def test_a_default_key_may_make_fifty_requests_a_second_whatever_its_tenant_does() -> None:
    second = rate_limits.Quota("caller", rate_limits.REQUESTS_PER_MINUTE)
    assert second.interval <= 20_000
    assert rate_limits.Quota("tenant", TENANT_QUOTA).interval <= second.interval  # the least that a deployment may set


@pytest.mark.parametrize("requests", [1, 7, 59, 60, 6000, 7747, 999_999, 1_000_000])
def test_a_quota_holds_exactly_its_requests(requests: int) -> None:
    quota = rate_limits.Quota("x", requests)
    assert quota.span // quota.interval == requests
    assert 0 <= 60_000_000 - quota.span < requests
