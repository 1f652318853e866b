"""A server in front of a real OpenSearch that passes everything on, keeps what it saw, and misbehaves as a test says."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str  # with its query
    headers: Mapping[str, str]
    body: bytes

    @property
    def verb(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]


Answer = tuple[int, Any]
Fault = Callable[[Seen, Callable[[], Answer]], Answer | None]
"""Gives the answer to a request, itself or from the engine behind; None hangs up."""


class EngineProxy:
    def __init__(self, behind: str) -> None:
        self.seen: list[Seen] = []
        self.fault: Fault | None = None
        self.over = threading.Event()  # ends every fault that waits
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Quiet."""

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                proxy.seen.append(seen)
                answer = proxy._answer(behind, seen)
                if answer is None:
                    self.close_connection = True
                    return
                told = b"" if self.command == "HEAD" else json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that did not wait is what is tested."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _answer(self, behind: str, seen: Seen) -> Answer | None:
        def forward() -> Answer:
            kept = {name: value for name, value in seen.headers.items() if name == "content-type"}
            found = httpx.request(seen.method, f"{behind}{seen.path}", content=seen.body, headers=kept, timeout=60)
            return found.status_code, found.json() if found.content else None

        return self.fault(seen, forward) if self.fault is not None else forward()

    def searches(self) -> int:
        return sum(one.verb == "_msearch" for one in self.seen)

    @contextmanager
    def running(self) -> Iterator["EngineProxy"]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self.over.set()
            self._server.shutdown()
            self._server.server_close()
