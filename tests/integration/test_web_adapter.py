"""The streaming function as the Lambda Web Adapter meets it in AWS."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tidemark.clock import now

from functions.chat_stream.app import application
from tests.support.world import Client, World, world

RUN = Path(__file__).resolve().parents[2] / "functions" / "chat_stream" / "run.sh"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, AWS_LAMBDA_RUNTIME_API="127.0.0.1:9001") as made:
        yield made


@pytest.fixture
def adapter() -> Iterator[TestClient]:
    with TestClient(application(), base_url="http://127.0.0.1:8080") as client:
        yield client


def said_by_the_adapter(client: Client | None, seconds: int = 100) -> dict[str, str]:
    found = {"authorizer": {"caller": client.caller.model_dump_json()}} if client else {}
    deadline = int((now() + timedelta(seconds=seconds)).timestamp() * 1000)
    context = {"requestId": "request-1", "stage": "api", **found}
    return {"x-amzn-request-context": json.dumps(context), "x-amzn-lambda-context": json.dumps({"deadline": deadline})}


def turn(adapter: TestClient, client: Client, headers: dict[str, str], **body: Any) -> Any:
    path = f"/v1/conversations/{client.conversation()}/messages"
    return adapter.post(path, json={"content": "Hello.", **body}, headers=headers, params=client.query)


def test_it_is_ready_when_it_says_so(aws: World, adapter: TestClient) -> None:
    assert adapter.get("/ready").status_code == 200


@pytest.mark.parametrize("stream", [True, False])
def test_the_authorizer_s_caller_is_the_caller(ada: Client, adapter: TestClient, stream: bool) -> None:
    answer = turn(adapter, ada, said_by_the_adapter(ada), stream=stream)
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] == "request-1"
    assert answer.headers["content-type"].startswith("text/event-stream" if stream else "application/json")


def test_the_stage_in_front_of_a_path_does_not_matter(ada: Client, adapter: TestClient) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "Hello."}]}
    for path in ("/v1/chat/completions", "/api/v1/chat/completions"):
        assert adapter.post(path, json=body, headers=said_by_the_adapter(ada)).status_code == 200


def test_who_was_not_authorized_is_refused(ada: Client, adapter: TestClient) -> None:
    assert turn(adapter, ada, said_by_the_adapter(None)).status_code == 401
    assert turn(adapter, ada, {}).status_code == 401


def test_outside_of_lambda_nobody_can_say_who_he_is(aws: World, ada: Client, adapter: TestClient) -> None:
    aws.patch.delenv("AWS_LAMBDA_RUNTIME_API")
    assert turn(adapter, ada, said_by_the_adapter(ada)).status_code == 401


def test_other_paths_are_nobody_s(ada: Client, adapter: TestClient) -> None:
    assert adapter.post("/v1/conversations", json={}, headers=said_by_the_adapter(ada)).status_code == 404


def test_the_start_script_serves_the_port_that_the_adapter_asks() -> None:
    text = RUN.read_text(encoding="utf-8")
    assert RUN.stat().st_mode & 0o111
    assert re.search(r"exec python -m uvicorn --factory app:application .*AWS_LWA_PORT", text)
