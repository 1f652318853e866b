"""Servers that speak a provider's protocol and misbehave as a test says."""

import json
import struct
import threading
import time
from binascii import crc32
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One answer: `chunks` go out one by one with `pause` between them; `cut` drops the connection instead of ending the body. A generator
    of chunks decides itself when each one goes, for one answer."""

    chunks: Iterable[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    cut: bool = False


class Server:
    """Answers with the replies in their order, the last one again and again, and keeps what it was asked."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Quiet."""

            def do_POST(self) -> None:
                owner.paths.append(self.path)
                owner.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                reply = owner.replies.pop(0) if len(owner.replies) > 1 else owner.replies[0]
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.send_header("connection", "close")
                self.end_headers()
                try:
                    self._send(reply)
                except OSError:
                    self.close_connection = True

            def _send(self, reply: Reply) -> None:
                for chunk in reply.chunks:
                    time.sleep(reply.pause)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                if reply.cut:
                    self.close_connection = True
                    self.connection.close()
                else:
                    self.wfile.write(b"0\r\n\r\n")

        class Threads(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that has gone is what some tests are about."""

        self._server = Threads(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


# OpenAI's
def sse(*chunks: object, done: bool = True) -> list[bytes]:
    lines = [f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in chunks]
    return [*lines, b"data: [DONE]\n\n"] if done else lines


def piece(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "model": "served", "choices": choices, **more}


# Bedrock's
def frame(kind: str, payload: dict[str, Any], *, exception: bool = False) -> bytes:
    """One message of Amazon's event stream encoding."""
    names = {":message-type": "exception", ":exception-type": kind} if exception else {":message-type": "event", ":event-type": kind}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in {**names, ":content-type": "application/json"}.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 12 + len(headers) + len(body) + 4, len(headers))
    head = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return head + struct.pack("!I", crc32(head))
