"""What the adapter does with answers and failures of the engine, without one."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.credentials import Credentials
from opensearchpy import Connection, OpenSearch
from opensearchpy.exceptions import ConnectionError as NotConnected
from opensearchpy.exceptions import ConnectionTimeout, TransportError
from tidemark.search import opensearch
from tidemark.search.opensearch import OpenSearchIndex
from tidemark.search.opensearch_client import Breaker, Endpoint, connect
from tidemark.search.opensearch_question import Engine, Question, exact, key_of, stored, unit
from tidemark.search.port import Document, IndexModelMismatchError, Query, SearchUnavailableError

NOON = datetime(2024, 5, 8, 12, tzinfo=UTC)


def document(id: str = "one", **fields: Any) -> Document:
    return Document(id=id, kind="memory", tenant_id="ten", scope="ada", text="red tea", occurred_at=NOON, updated_at=NOON, **fields)


class Script(Connection):
    """Answers requests by their path; `sent` holds (method, path, body)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(host="script", **{key: value for key, value in options.items() if key not in ("host", "hosts")})
        self.sent: list[tuple[str, str, str]] = []
        self.answers: dict[str, list[Any]] = {}

    def perform_request(self, method: str, url: str, params: Any = None, body: Any = None, *_: Any, **__: Any) -> Any:
        self.sent.append((method, url, (body or b"").decode()))
        key = next(key for key in self.answers if url.endswith(key))
        waiting = self.answers[key]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        return 200, {"content-type": "application/json"}, json.dumps(answer)


def there(model: str = "toy", dimension: int = 2, alias: str | None = None) -> dict[str, Any]:
    index = OpenSearchIndex(OpenSearch(), "toy", 2)
    meta = {"model_id": model, "dimension": dimension, "layout": opensearch.LAYOUT}
    settings = {"index": {"number_of_shards": "1"}}
    return {"tidemark.x.1": {"aliases": {alias or index.alias: {}}, "mappings": {"_meta": meta}, "settings": settings}}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    made = Script()
    made.answers["/tidemark.*"] = [there()]
    return made


def index_on(script: Script) -> OpenSearchIndex:
    client = OpenSearch(max_retries=0)
    client.transport.connection_pool.connections = [script]
    client.transport.get_connection = lambda: script  # type: ignore[method-assign]
    return OpenSearchIndex(client, "toy", 2)


def bulk(*results: Mapping[str, Any]) -> dict[str, Any]:
    return {"items": [{"index": {"_id": "x", **result}} for result in results], "errors": True}


BUSY = {"status": 429, "error": {"type": "rejected_execution_exception"}}
BAD = {"status": 400, "error": {"type": "mapper_parsing_exception"}}
DONE = {"status": 201, "result": "created"}


# Writing


def test_items_that_the_engine_had_no_room_for_are_tried_again_alone(script: Script) -> None:
    script.answers["_bulk"] = [bulk(DONE, BUSY), bulk(DONE)]
    index_on(script).upsert([document("one"), document("two")])
    bodies = [body for _, url, body in script.sent if url.endswith("_bulk")]
    assert [body.count('"words"') for body in bodies] == [2, 1]
    assert '"id":"two"' in bodies[1]


def test_an_engine_without_room_is_told_after_some_tries(script: Script) -> None:
    script.answers["_bulk"] = [bulk(BUSY)]
    with pytest.raises(SearchUnavailableError):
        index_on(script).upsert([document()])


def test_a_refused_item_is_told_when_all_others_are_stored(script: Script) -> None:
    script.answers["_bulk"] = [bulk(*[DONE] * 199, BAD), bulk(DONE)]
    with pytest.raises(SearchUnavailableError, match="1 of 201"):
        index_on(script).upsert([document(str(number)) for number in range(201)])
    assert len([1 for _, url, _ in script.sent if url.endswith("_bulk")]) == 2


def test_an_index_of_another_model_is_refused_and_nothing_is_made(script: Script) -> None:
    script.answers["/tidemark.*"] = [there("other", 3, alias="tidemark.other")]
    with pytest.raises(IndexModelMismatchError, match="other"):
        index_on(script).search(Query("ten", "ada", "memory", "tea", 5))
    assert [method for method, _, _ in script.sent] == ["GET"]


# Searching


def test_a_part_that_failed_is_no_empty_answer(script: Script) -> None:
    script.answers["_msearch"] = [{"responses": [{"error": {"type": "search_phase_execution_exception"}, "status": 503}] * 2}]
    with pytest.raises(SearchUnavailableError):
        index_on(script).search(Query("ten", "ada", "memory", "tea", 5))


def test_an_answer_that_ran_out_of_time_is_no_empty_answer(script: Script) -> None:
    script.answers["_msearch"] = [{"responses": [{"timed_out": True, "hits": {"hits": []}}] * 2}]
    with pytest.raises(SearchUnavailableError):
        index_on(script).search(Query("ten", "ada", "memory", "tea", 5))


@pytest.mark.parametrize(
    "failure",
    [
        NotConnected("N/A", "refused", OSError()),
        ConnectionTimeout("TIMEOUT", "slow", OSError()),
        TransportError(503, "x"),
        TransportError(403, "x"),
    ],
)
def test_an_engine_that_does_not_answer_is_told(script: Script, failure: Exception) -> None:
    script.answers["/tidemark.*"] = [failure]
    with pytest.raises(SearchUnavailableError):
        index_on(script).search(Query("ten", "ada", "memory", "tea", 5))


def test_every_search_names_its_scope_in_filter_and_routing() -> None:
    query = Query("ten", "ada", "memory", "red tea", 5, [1.0, 0.0], speaker="Ada")
    question = Question(query, Engine("lucene"))
    scope = {"term": {"partition": key_of("ten", "ada", "memory")}}
    nearest, lexical, named = question.searches()
    assert question.routing == key_of("ten", "ada")
    assert nearest["query"]["knn"]["vector"]["filter"]["bool"]["filter"][0] == scope
    assert nearest["query"]["knn"]["vector"]["k"] >= 100
    assert lexical["query"]["bool"]["filter"] == [scope, {"term": {"speaker_key": "ada"}}]
    assert named["query"]["bool"]["filter"] == [scope]


def test_a_question_of_nothing_asks_nothing(script: Script) -> None:
    assert index_on(script).search(Query("ten", "ada", "memory", "", 5)) == []
    assert [url for _, url, _ in script.sent] == ["/tidemark.*"]


@pytest.mark.parametrize(("engine", "scores"), [("lucene", {1.0: 1.0, 0.5: 0.0, 0.0: -1.0}), ("faiss", {2.0: 1.0, 1.0: 0.0, 0.5: -1.0})])
def test_a_score_of_either_engine_is_a_cosine(engine: str, scores: dict[float, float]) -> None:
    assert {score: Engine(engine).cosine(score) for score in scores} == scores


# Values


def test_parts_of_a_key_cannot_run_into_each_other() -> None:
    assert len({key_of("a", "bc"), key_of("ab", "c"), key_of("abc"), key_of("a", "b", "c"), key_of("", "abc")}) == 5


def test_values_that_the_engine_would_refuse_are_known_by_their_hash() -> None:
    assert exact("team-a") == "team-a"
    assert exact("x" * 40_000) != exact("x" * 40_001)
    assert len(exact("x" * 40_000)) < 100
    assert exact("\ud800").isascii()


def test_words_of_the_text_count_twice_those_of_the_context_once() -> None:
    fields = stored(document(context="green tea"), "red tea")
    assert set(fields["words"].split()) == {"red|2", "tea|3", "green|1"}
    assert fields["length"] == 3


def test_vectors_have_length_one_and_zeros_are_none() -> None:
    assert unit([3.0, 4.0]) == [0.6, 0.8]
    assert unit([0.0, 0.0]) is None
    assert unit(None) is None


# The circuit


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def fail() -> None:
    raise NotConnected("N/A", "refused", OSError())


def test_after_some_failures_nothing_is_asked_until_a_pause_is_over() -> None:
    clock, asked = Clock(), list[int]()
    breaker = Breaker(failures=3, pause=10, clock=clock)
    for _ in range(3):
        with pytest.raises(SearchUnavailableError):
            breaker.run(fail)
    with pytest.raises(SearchUnavailableError):
        breaker.run(lambda: asked.append(1))
    assert asked == []
    clock.now = 10
    with pytest.raises(SearchUnavailableError):
        breaker.run(fail)  # one call tries; it failed, so the pause begins anew
    with pytest.raises(SearchUnavailableError):
        breaker.run(lambda: asked.append(1))
    clock.now = 20
    breaker.run(lambda: asked.append(1))
    breaker.run(lambda: asked.append(1))
    assert asked == [1, 1]


def test_refusals_are_told_but_do_not_break_the_circuit() -> None:
    breaker = Breaker(failures=1, clock=Clock())

    def refuse() -> None:
        raise TransportError(400, "parsing_exception")

    with pytest.raises(SearchUnavailableError):
        breaker.run(refuse)
    assert breaker.run(lambda: 1) == 1


# Signing


@pytest.mark.parametrize(
    ("url", "on_aws", "service"),
    [
        ("http://127.0.0.1:9200", False, None),
        ("https://search-tidemark-abc.eu-central-1.es.amazonaws.com", False, "es"),
        ("https://abc.eu-central-1.aoss.amazonaws.com", True, "aoss"),
        ("https://search.example.org", True, "es"),
        ("https://user:secret@search.example.org", True, None),
        ("https://es.amazonaws.com.evil.example", False, None),
    ],
)
def test_what_is_signed(url: str, on_aws: bool, service: str | None) -> None:
    assert Endpoint.of(url, on_aws=on_aws).service == service


def test_requests_to_a_domain_are_signed_with_credentials_that_may_change() -> None:
    endpoint = Endpoint.of("https://search-tidemark-abc.eu-central-1.es.amazonaws.com")
    client = connect(endpoint, "eu-central-1", Credentials("AKIDEXAMPLE", "secret", "token"))
    connection = client.transport.connection_pool.connections[0]
    headers = connection.http_auth("POST", f"{endpoint.url}:443/_msearch?request=1", b"{}")
    assert "/eu-central-1/es/aws4_request" in headers["Authorization"]
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert headers["X-Amz-Security-Token"] == "token"
    assert len(headers["X-Amz-Content-SHA256"]) == 64


def test_serverless_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="managed domain"):
        connect(Endpoint.of("https://abc.eu-central-1.aoss.amazonaws.com"), "eu-central-1", Credentials("AKIDEXAMPLE", "secret"))
