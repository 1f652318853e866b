"""Events as AWS delivers them, from the files in tests/events."""

import copy
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).resolve().parents[1] / "events"

Event = dict[str, Any]


@cache
def _file(name: str) -> str:
    return (EVENTS / f"{name}.json").read_text(encoding="utf-8")


def load(name: str) -> Event:
    event: Event = json.loads(_file(name))
    return event


def http(
    method: str,
    path: str,
    *,
    caller: str | None = None,
    body: str | None = None,
    query: Mapping[str, str | list[str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Event:
    """A request as API Gateway's REST API hands it to a function; `caller` is what the authorizer found."""
    event = load("api_gateway_proxy")
    many = {name: [value] if isinstance(value, str) else value for name, value in (query or {}).items()}
    sent = {**event["headers"], **(headers or {})}
    event |= {
        "httpMethod": method,
        "path": path,
        "resource": path,
        "body": body,
        "headers": sent,
        "multiValueHeaders": {name: [value] for name, value in sent.items()},
        "queryStringParameters": {name: values[-1] for name, values in many.items()} or None,
        "multiValueQueryStringParameters": many or None,
    }
    context = event["requestContext"] | {"httpMethod": method, "path": f"/api{path}", "resourcePath": path}
    if caller is None:
        context.pop("authorizer")
    else:
        context["authorizer"] |= {"caller": caller}
    return event | {"requestContext": context}


def authorizer(token: str | None) -> Event:
    event = load("api_gateway_authorizer")
    headers = {name: value for name, value in event["headers"].items() if name != "Authorization"}
    if token is not None:
        headers["Authorization"] = token
    return event | {"headers": headers}


def sqs(bodies: Iterable[str]) -> Event:
    event = load("sqs")
    first = event["Records"][0]
    return {"Records": [copy.deepcopy(first) | {"messageId": f"message-{place}", "body": body} for place, body in enumerate(bodies)]}


def stream(changes: Iterable[Mapping[str, Any]]) -> Event:
    """Stream records of changes {NewImage?, OldImage?, SequenceNumber}, in DynamoDB's attribute notation."""
    first = load("dynamodb_stream")["Records"][0]
    records = []
    for change in changes:
        name = "REMOVE" if "NewImage" not in change else "MODIFY" if "OldImage" in change else "INSERT"
        about = {key: value for key, value in first["dynamodb"].items() if key not in ("NewImage", "OldImage")}
        records.append(copy.deepcopy(first) | {"eventName": name, "dynamodb": about | dict(change)})
    return {"Records": records}
