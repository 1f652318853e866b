"""A real OpenSearch that is down, slow, busy or half broken: turns are answered, nobody takes it for an empty index, metrics tell."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from tidemark import bootstrap
from tidemark.search import opensearch as adapter

from tests.support import metrics, opensearch
from tests.support.engine_proxy import Answer, EngineProxy, Fault, Seen
from tests.support.models import HashEmbedder
from tests.support.world import Client, World, new_process, use

pytestmark = pytest.mark.opensearch

REAL = adapter.OpenSearchIndex
FACT = "The kiln is fired at dawn."
QUESTION = "When is the kiln fired?"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example", "AWS_SESSION_TOKEN": "a session"}


@pytest.fixture
def proxy() -> Iterator[EngineProxy]:
    with EngineProxy(opensearch.url()).running() as made:
        yield made


@pytest.fixture
def aws(tmp_path: Path, proxy: EngineProxy) -> Iterator[World]:
    with opensearch.searched_world(tmp_path, "opensearch", proxy.url) as made:
        made.patch.setattr(adapter, "OpenSearchIndex", REAL)  # a refresh in front of each search would meet the faults first
        use(made.patch, "embedder", HashEmbedder())
        yield made


# Faults


def refused(status: int, error: str) -> Fault:
    def answer(seen: Seen, forward: Any) -> Answer:
        return status, {"error": {"type": error}, "status": status}

    return answer


def hung_up(seen: Seen, forward: Any) -> None:
    return None


def some_shards_failed(seen: Seen, forward: Any) -> Answer:
    status, body = forward()
    if seen.verb == "_msearch":
        body["responses"][-1] = {"error": {"type": "search_phase_execution_exception"}, "status": 503}
    return status, body


def out_of_time(seen: Seen, forward: Any) -> Answer:
    status, body = forward()
    for one in body.get("responses", ()):
        one["timed_out"] = True
    return status, body


def no_alias(seen: Seen, forward: Any) -> Answer:
    status, body = forward()
    if seen.verb == "_msearch":
        body["responses"] = [{"error": {"type": "index_not_found_exception"}, "status": 404} for _ in body["responses"]]
    return status, body


FAULTS: dict[str, Fault] = {
    "busy": refused(429, "rejected_execution_exception"),
    "away": refused(503, "service_unavailable"),
    "broken": refused(500, "null_pointer_exception"),
    "forbidden": refused(403, "security_exception"),
    "hung-up": hung_up,
    "some-shards-failed": some_shards_failed,
    "out-of-time": out_of_time,
    "no-alias": no_alias,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_is_answered_and_a_search_says_that_it_could_not(
    aws: World, ada: Client, proxy: EngineProxy, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ada.post("/v1/memories/remember", {"text": FACT})
    assert ada.search(QUESTION)["items"] != []
    proxy.fault = FAULTS[fault]
    metrics.told(capsys, "SearchUnavailable")
    answer = ada.say(ada.conversation(), QUESTION)
    assert answer["metadata"]["finish_reason"] == "stop"
    assert answer["metadata"]["memory_used"] is False
    assert sum(metrics.told(capsys, "SearchUnavailable")) >= 1
    assert ada.refused("POST", "/v1/memories/search", {"query": QUESTION}) == (503, "search_unavailable")
    proxy.fault = None
    new_process()  # as if the pause of the circuit had passed
    assert ada.say(ada.conversation(), QUESTION)["metadata"]["memory_used"] is True


def test_a_slow_engine_is_not_waited_for(aws: World, ada: Client, proxy: EngineProxy, capsys: pytest.CaptureFixture[str]) -> None:
    ada.post("/v1/memories/remember", {"text": FACT})
    aws.patch.setattr(adapter, "SEARCH_SECONDS", 0.3)

    def slow(seen: Seen, forward: Any) -> Answer:
        if seen.verb == "_msearch":
            proxy.over.wait(60)
        answer: Answer = forward()
        return answer

    proxy.fault = slow
    metrics.told(capsys, "SearchUnavailable")
    assert ada.say(ada.conversation(), QUESTION)["metadata"]["memory_used"] is False
    assert sum(metrics.told(capsys, "SearchUnavailable")) >= 1
    assert not proxy.over.is_set()


def test_what_is_remembered_while_the_engine_is_away_is_confirmed_and_found_later(
    aws: World, ada: Client, proxy: EngineProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy.fault = FAULTS["away"]
    answer = ada.say(ada.conversation(), f"Remember this: {FACT}")
    assert answer["metadata"]["finish_reason"] == "memory_confirmation"
    assert sum(metrics.told(capsys, "IndexingDeferred")) >= 1
    proxy.fault = None
    new_process()
    aws.index()  # the stream brings it again
    bootstrap.opensearch_index().refresh()
    assert ada.say(ada.conversation(), QUESTION)["metadata"]["memory_used"] is True


def test_the_circuit_opens_lets_one_call_try_and_closes(aws: World, ada: Client, proxy: EngineProxy) -> None:
    ada.post("/v1/memories/remember", {"text": FACT})
    ada.search(QUESTION)
    breaker = bootstrap.index()._breaker  # type: ignore[attr-defined]  # nobody else ends its pause
    aws.patch.setattr(breaker, "_pause", 3600.0)
    proxy.fault = FAULTS["hung-up"]
    before = len(proxy.seen)
    for _ in range(6):
        assert ada.refused("POST", "/v1/memories/search", {"query": QUESTION})[1] == "search_unavailable"
    tried = len(proxy.seen) - before
    assert tried <= 3 * 2  # three failures, each with its second try on a new connection
    proxy.fault = None
    assert ada.refused("POST", "/v1/memories/search", {"query": QUESTION})[1] == "search_unavailable"
    assert len(proxy.seen) - before == tried  # while it is open nothing is asked
    aws.patch.setattr(breaker, "_until", 0.0)  # the pause is over
    assert ada.search(QUESTION)["items"] != []
    assert ada.search(QUESTION)["items"] != []


def test_items_that_a_bulk_write_had_no_room_for_are_written_in_the_end(aws: World, ada: Client, proxy: EngineProxy) -> None:
    aws.patch.setattr(adapter, "_FIRST_PAUSE", 0.0)
    refusals = iter([True, True])

    def no_room_for_the_first(seen: Seen, forward: Any) -> Answer:
        if seen.verb != "_bulk" or not next(refusals, False):
            answer: Answer = forward()
            return answer
        return 200, {
            "errors": True,
            "items": [
                {"index": {"_id": "x", "status": 429, "error": {"type": "rejected_execution_exception"}}}
                for line in seen.body.splitlines()
                if line.startswith(b'{"index"')
            ],
        }

    proxy.fault = no_room_for_the_first
    ada.post("/v1/memories/remember", {"text": FACT})
    assert ada.search(QUESTION)["items"] != []


# Signing


def signature_of(seen: Seen, url: str, service: str) -> str:
    """What the signature of a received request has to be, computed from what arrived."""
    request = AWSRequest(seen.method, f"{url}{seen.path}", data=seen.body)
    request.context["timestamp"] = seen.headers["x-amz-date"]
    signed = seen.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    for name in signed:
        request.headers[name] = seen.headers[name]
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "example", "a session"), service, "us-east-1")
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


def test_every_request_to_a_domain_is_signed_as_it_arrives(aws: World, ada: Client, proxy: EngineProxy) -> None:
    """An owner's host name stands for the domain: on AWS whatever has no user in its address is signed for `es`."""
    proxy.seen.clear()
    for name, value in {"TIDEMARK_ENVIRONMENT": "aws", **CREDENTIALS}.items():
        aws.patch.setenv(name, value)
    use(aws.patch, "embedder", HashEmbedder())  # a process of its own
    ada.post("/v1/memories/remember", {"text": FACT})
    assert ada.search(QUESTION)["items"] != []
    ada.post("/v1/memories/forget", {"query": QUESTION, "dry_run": False})
    bootstrap.indexing().remove_scope(ada.caller.tenant_id, None)
    assert {"_bulk", "_msearch", "_refresh", "_delete_by_query"} <= {one.verb for one in proxy.seen}
    for seen in proxy.seen:
        told = seen.headers["authorization"]
        assert told.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert "/us-east-1/es/aws4_request" in told
        assert "x-amz-security-token" in told.partition("SignedHeaders=")[2]
        assert seen.headers["x-amz-security-token"] == "a session"
        assert seen.headers["x-amz-content-sha256"] == sha256(seen.body).hexdigest()
        assert told.endswith(f"Signature={signature_of(seen, proxy.url, 'es')}")
