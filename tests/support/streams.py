"""The streaming function's requests without a server: what goes out, chunk by chunk, and clients that leave."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from tidemark.errors import UnauthorizedError
from tidemark.tenancy.caller import Caller

from functions.chat_stream.app import ChatStream
from tests.support.world import Client

TOKEN = "x-test-caller"


@dataclass(frozen=True)
class Streamed:
    status: int
    headers: dict[str, str]
    chunks: tuple[bytes, ...]

    @property
    def text(self) -> str:
        return b"".join(self.chunks).decode()

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Name and data of each event; an event without a name is OpenAI's."""
        found = []
        for block in self.text.split("\n\n"):
            lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
            if lines:
                fields = {name: value for name, _, value in lines}
                data = fields["data"]
                found.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
        return found


def identify(request: Request) -> Caller:
    found = request.headers.get(TOKEN)
    if found is None:
        raise UnauthorizedError("no token")
    return Caller.model_validate_json(found)


def send(
    client: Client | None,
    path: str,
    body: Any = None,
    *,
    raw: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    leave_after: int | None = None,
    **query: str,
) -> Streamed:
    """One request; `leave_after` chunks the client is gone."""
    data = raw if raw is not None else json.dumps(body).encode()
    sent = {"content-type": "application/json", **(headers or {})}
    if client is not None:
        sent[TOKEN] = client.caller.model_dump_json()
        query = {**client.query, **query}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(query).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
    }
    return asyncio.run(_serve(scope, path, data, leave_after))


async def _serve(scope: dict[str, Any], path: str, data: bytes, leave_after: int | None) -> Streamed:
    left = asyncio.Event()
    start: dict[str, Any] = {}
    chunks: list[bytes] = []

    async def receive() -> dict[str, str]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        elif message.get("body"):
            chunks.append(message["body"])
            if leave_after is not None and len(chunks) >= leave_after:
                left.set()
                await asyncio.sleep(0)

    response = await ChatStream(identify).answer(Request(scope), path, data)
    await response(scope, receive, sent)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Streamed(start["status"], headers, tuple(chunks))
