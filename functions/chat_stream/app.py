"""Turns and chat completions as server-sent events, or whole to who asks for no stream.

In AWS uvicorn serves this under the Lambda Web Adapter, behind the same REST API and authorizer as all other functions; locally the edge
serves it itself. A request is worked on in a thread of its own, which goes on when its client has gone.
"""

import asyncio
import json
import os
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.conversations.turns import Event
from tidemark.errors import TidemarkError, UnauthorizedError
from tidemark.http.app import Headers
from tidemark.http.chat import COMPLETIONS, ChatContext, ChatHandler, ChatRoutes, is_served, refused, wants_stream
from tidemark.http.events import HEARTBEAT, ChunkFrames, Frames, TurnFrames
from tidemark.http.idempotency import Proxy
from tidemark.observability import logger, where
from tidemark.tenancy.caller import Caller

HEARTBEAT_SECONDS = 15.0
LONGEST_SECONDS = 118.0  # of an answer, where the function's own time is not told
SPARE = timedelta(seconds=2)  # between the end of a turn and the end of its function

Identify = Callable[[Request], Caller]


class ChatStream:
    """Serves the chat routes of one process; `identify` says who sent a request, or raises UnauthorizedError."""

    def __init__(self, identify: Identify) -> None:
        self._identify = identify
        self._routes = ChatRoutes(bootstrap.turns, bootstrap.completions)

    async def answer(self, request: Request, path: str, body: bytes) -> Response:
        event = _proxy_event(request, path, body)
        exchange = _Exchange()
        # Not a pool: its threads would keep the process from ending, and a turn may wait for its model for minutes.
        threading.Thread(target=self._work, args=(request, event, exchange), daemon=True).start()
        first = await exchange.next()
        if isinstance(first, dict) and not (exchange.streaming and first["statusCode"] == 200):
            return _whole(first)
        headers = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
        response = StreamingResponse(exchange.frames(_frames(event), first), headers=headers, media_type="text/event-stream")
        _add(response, exchange.headers | _replayed(first))
        return response

    def _work(self, request: Request, event: dict[str, Any], exchange: "_Exchange") -> None:
        try:
            exchange.put(self._served(request, event, exchange))
        except UnauthorizedError:
            exchange.put(refused(event, UnauthorizedError("A valid bearer token is required."), bootstrap.settings().cors_origins))
        except Exception as exc:  # noqa: BLE001 - a request is answered, whatever happens
            logger.error("unexpected error", error=type(exc).__name__, where=where(exc))
            exchange.put(refused(event, TidemarkError("Something went wrong on our side."), ""))

    def _served(self, request: Request, event: dict[str, Any], exchange: "_Exchange") -> Proxy:
        exchange.streaming = wants_stream(event["path"], request.headers.get("accept", ""), event["body"])
        event["requestContext"]["authorizer"] = {"caller": self._identify(request).model_dump_json()}
        handler = ChatHandler(self._routes, bootstrap.settings, bootstrap.idempotency, exchange.headers.update)
        return handler(event, ChatContext(_deadline(request), exchange.put if exchange.streaming else _nobody))


class _Exchange:
    """What a worker's thread hands to the request's coroutine: events, and at the end the whole answer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Event | Proxy] = asyncio.Queue()
        self.headers: Headers = {}
        self.streaming = False

    def put(self, item: Event | Proxy) -> None:
        with suppress(RuntimeError):  # the loop has ended; the turn has not
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def next(self) -> Event | Proxy:
        return await self._items.get()

    async def frames(self, frames: Frames, item: Event | Proxy) -> AsyncIterator[bytes]:
        while isinstance(item, Event):
            yield frames.event(item)
            while (found := await self._soon()) is None:
                yield HEARTBEAT
            item = found
        body = json.loads(item["body"])
        yield frames.end(body) if item["statusCode"] == 200 else frames.error(body)

    async def _soon(self) -> Event | Proxy | None:
        try:
            return await asyncio.wait_for(self._items.get(), HEARTBEAT_SECONDS)
        except TimeoutError:
            return None


def _replayed(first: Event | Proxy) -> Headers:
    name = "Idempotency-Replayed"
    return {name: first["multiValueHeaders"][name]} if isinstance(first, dict) and name in first["multiValueHeaders"] else {}


def _nobody(_: Event) -> None:
    """Who asked for no stream is told the end only."""


def _frames(event: dict[str, Any]) -> Frames:
    if event["path"] != COMPLETIONS:
        return TurnFrames()
    body = json.loads(event["body"])
    options = body.get("stream_options") or {}
    return ChunkFrames(str(body.get("model") or ""), include_usage=options.get("include_usage") is True)


# between the two forms of a request
def _proxy_event(request: Request, path: str, body: bytes) -> dict[str, Any]:
    """The request as API Gateway gives it to a function."""
    query: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        query.setdefault(name, []).append(value)
    context = _adapter_header(request, "x-amzn-request-context")
    return {
        "httpMethod": request.method,
        "path": path,
        "resource": path if path == COMPLETIONS else "/v1/conversations/{conversation_id}/messages",
        "headers": dict(request.headers),
        "queryStringParameters": {name: values[-1] for name, values in query.items()},
        "multiValueQueryStringParameters": query,
        "body": _text(body),
        "requestContext": {"requestId": context.get("requestId") or str(uuid.uuid4())},
    }


def _text(body: bytes) -> str:
    """What is no UTF-8 is no JSON either."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "not UTF-8"


def _whole(answer: Proxy) -> Response:
    response = Response(answer["body"], answer["statusCode"])
    _add(response, answer["multiValueHeaders"])
    return response


def _add(response: Response, headers: Headers) -> None:
    for name, values in headers.items():
        for value in values:
            response.headers.append(name.lower(), value)


# under the Lambda Web Adapter
def _adapter_header(request: Request, name: str) -> dict[str, Any]:
    """What the adapter says of the invocation. It sets these headers itself; locally there is no adapter, and they are not read."""
    if "AWS_LAMBDA_RUNTIME_API" not in os.environ:
        return {}
    found: dict[str, Any] = json.loads(request.headers.get(name) or "{}")
    return found


def _deadline(request: Request) -> datetime:
    ends = _adapter_header(request, "x-amzn-lambda-context").get("deadline")
    if ends is None:
        return now() + timedelta(seconds=LONGEST_SECONDS)
    return datetime.fromtimestamp(int(ends) / 1000, UTC) - SPARE


def authorized(request: Request) -> Caller:
    """The caller that API Gateway's authorizer found."""
    found = (_adapter_header(request, "x-amzn-request-context").get("authorizer") or {}).get("caller")
    if not found:
        raise UnauthorizedError("A valid bearer token is required.")
    return Caller.model_validate_json(found)


def application() -> Starlette:
    """What uvicorn serves in AWS."""
    stream = ChatStream(authorized)

    async def serve(request: Request) -> Response:
        raw: bytes = request.scope["raw_path"]
        path = raw.decode("latin-1").partition("?")[0].removeprefix("/api")
        if not is_served(request.method, path):
            return Response(status_code=404)
        return await stream.answer(request, path, await request.body())

    async def ready(_: Request) -> Response:
        await asyncio.to_thread(bootstrap.completions)
        return Response("ready")

    return Starlette(routes=[Route("/ready", ready, methods=["GET"]), Route("/{path:path}", serve, methods=["POST"])])
