"""The one port that a person sees: /api/* goes to the emulated API Gateway, the rest stands in for what AWS has elsewhere.

What it corrects of the emulator's gateway is listed in docs/operations/local-stack.md.
"""

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from tidemark.http.chat import is_served, wants_stream

from infra.local.problems import problem

LIMIT = 5 * 1024 * 1024
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# Of the connection and not of the message, and what the emulator would take for a call of its own AWS services.
DROPPED = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
    "host",
    "content-length",
    "expect",
}
DROPPED_PREFIXES = ("x-amz-", "x-ministack-")


Stream = Callable[[Request, str, bytes], Awaitable[Response]]


class TooLarge(Exception):
    pass


class Door:
    """Closed until the service is ready: whoever sees /api/health answer 200 finds the credentials written. The key lets the start in."""

    HEADER = "x-tidemark-start"

    def __init__(self) -> None:
        self.key = secrets.token_hex()
        self.is_open = False

    def lets(self, request: Request) -> bool:
        return self.is_open or secrets.compare_digest(request.headers.get(self.HEADER, "").encode(), self.key.encode())


def application(stage_url: str, cors_origins: str, local: list[Route], stream: Stream, door: Door) -> Starlette:
    """`stream` answers the requests for events, which the emulated gateway could only hold back until their end."""
    origins = [origin.strip() for origin in cors_origins.split(",") if origin.strip()]
    client = httpx.AsyncClient(timeout=httpx.Timeout(60, connect=5), limits=httpx.Limits(max_connections=200), trust_env=False)

    async def forward(request: Request) -> Response:
        cors = _cors(request, origins)
        if not door.lets(request):
            return problem(503, "starting", "The service is starting.", headers=cors | {"Retry-After": "1"})
        try:
            body = await _body(request)
        except TooLarge:
            return problem(413, "payload_too_large", "The body is larger than 5 MB.", headers=cors)
        except ClientDisconnect:
            return Response(status_code=499)
        if not _is_text(body):
            return problem(400, "malformed_json", "The body is not UTF-8.", headers=cors)
        if _is_for_events(request, body):
            return await stream(request, _path(request), body)
        return await _through_gateway(client, f"{stage_url}{_target(request)}", request, body, cors)

    async def redirect(request: Request) -> Response:
        return RedirectResponse("/api/docs" if request.url.path == "/docs" else "/api/console/", 307)

    async def unknown(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return problem(404 if status == 405 else status, "route_not_found", "There is no such path or method.")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(
        routes=[
            Route("/api/{path:path}", forward, methods=METHODS),
            *(Route(path, redirect, methods=["GET"]) for path in ("/", "/console", "/console/", "/docs")),
            *local,
        ],
        exception_handlers={404: unknown, 405: unknown},
        lifespan=lifespan,
    )


async def _through_gateway(client: httpx.AsyncClient, url: str, request: Request, body: bytes, cors: dict[str, str]) -> Response:
    outgoing = client.build_request(request.method, url, headers=_request_headers(request), content=body or None)
    try:
        answer = await client.send(outgoing)
    except httpx.TimeoutException:
        return problem(504, "gateway_timeout", "The service did not answer in time.", headers=cors)
    except httpx.HTTPError:
        return problem(502, "bad_gateway", "The emulated API Gateway cannot be reached.", headers=cors)
    return _gateway_failure(answer, cors) or _response(answer)


async def _body(request: Request) -> bytes:
    if request.headers.get("content-length", "0").isdecimal() and int(request.headers.get("content-length", "0")) > LIMIT:
        raise TooLarge
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LIMIT:
            raise TooLarge
        chunks.append(chunk)
    return b"".join(chunks)


def _path(request: Request) -> str:
    """The path below the stage, as the client wrote it."""
    raw: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    return raw.split(b"?", 1)[0].removeprefix(b"/api").decode("latin-1")


def _is_text(body: bytes) -> bool:
    """The emulator would put U+FFFD in the place of what is no UTF-8, and so make another text of it."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_for_events(request: Request, body: bytes) -> bool:
    path = _path(request)
    accept = request.headers.get("accept", "")
    return is_served(request.method, path) and wants_stream(path, accept, body.decode("utf-8", "replace"))


def _target(request: Request) -> str:
    """The path as the client wrote it. The emulator decodes it once where API Gateway hands it on encoded, so it is encoded once more."""
    path = quote(_path(request).encode("latin-1"), safe="/:@!$&'()*+,;=-._~")
    # A segment of dots would lead out of the stage, to the emulator's own addresses.
    path = "/".join(segment.replace(".", "%252E") if segment in (".", "..") else segment for segment in path.split("/"))
    query = quote(request.scope["query_string"], safe="/?:@!$&'()*+,;=-._~%[]")
    return f"{path}?{query}" if query else path


def _request_headers(request: Request) -> list[tuple[bytes, bytes]]:
    return [
        (name, value)
        for name, value in request.headers.raw
        if name.decode("latin-1") not in DROPPED and not name.decode("latin-1").startswith(DROPPED_PREFIXES)
    ]


def _response(answer: httpx.Response) -> Response:
    response = Response(answer.content, answer.status_code)
    kept: Iterable[tuple[bytes, bytes]] = (
        (name.lower(), value)
        for name, value in answer.headers.raw
        # The emulator's own server is none of the service's business.
        if name.decode("latin-1").lower() not in DROPPED | {"content-encoding", "server", "date"}
    )
    response.raw_headers = [*kept]
    if answer.status_code >= 200 and answer.status_code not in (204, 304):
        response.raw_headers.append((b"content-length", str(len(answer.content)).encode()))
    return response


def _gateway_failure(answer: httpx.Response, cors: dict[str, str]) -> Response | None:
    """A function that failed or ran out of time: the emulator answers 502 with a bare message, API Gateway through GatewayResponses."""
    if answer.status_code not in (500, 502) or answer.headers.get("content-type", "") != "application/json":
        return None
    try:
        message = json.loads(answer.content).get("message")
    except (ValueError, AttributeError):
        return None
    if message is None:
        return None
    if "timed out" in str(message):
        return problem(504, "gateway_timeout", "The service did not answer in time.", headers=cors)
    return problem(502, "bad_gateway", "The service could not answer.", headers=cors)


def _cors(request: Request, origins: list[str]) -> dict[str, str]:
    origin = request.headers.get("origin", "")
    if origin not in origins:
        return {}
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "X-Request-Id, Retry-After", "Vary": "Origin"}
