"""Answers as server-sent events: a turn's own, and OpenAI's chunks."""

import json
import time
from typing import Any, Protocol

from tidemark.conversations.turns import Event
from tidemark.http.openai import completion_id, error_body, tool_call_delta

HEARTBEAT = b": still here\n\n"
# Line ends to some readers, though not to the standard: a body may hold them.
SEPARATORS = str.maketrans({"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Frames(Protocol):
    """The bytes of one stream. `end` gets the whole answer, which is all there is where it was kept from an earlier request."""

    def event(self, event: Event) -> bytes: ...

    def end(self, answer: dict[str, Any]) -> bytes: ...

    def error(self, problem: dict[str, Any]) -> bytes: ...


def _data(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(SEPARATORS)


class TurnFrames:
    """message_start, compression_start, compression_end, delta, tool_call, message_end, error."""

    def __init__(self) -> None:
        self._begun = False

    def event(self, event: Event) -> bytes:
        self._begun = True
        return self._frame(event.name, event.data)

    def end(self, answer: dict[str, Any]) -> bytes:
        return (b"" if self._begun else self._again(answer)) + self._frame("message_end", answer)

    def error(self, problem: dict[str, Any]) -> bytes:
        return self._frame("error", problem)

    def _again(self, answer: dict[str, Any]) -> bytes:
        """The events of an answer that was given before, as far as they can be told from it."""
        message = answer["message"]
        frames = [self._frame("message_start", {name: answer[name] for name in ("conversation_id", "turn_id")})]
        if message["content"]:
            frames.append(self._frame("delta", {"text": message["content"]}))
        return b"".join([*frames, *(self._frame("tool_call", call) for call in message["tool_calls"])])

    @staticmethod
    def _frame(name: str, data: object) -> bytes:
        return f"event: {name}\ndata: {_data(data)}\n\n".encode("utf-8", "replace")


class ChunkFrames:
    """OpenAI's chunks; `include_usage` adds one with the usage and no choice."""

    def __init__(self, model: str, *, include_usage: bool) -> None:
        self._model, self._include_usage = model, include_usage
        self._id, self._created, self._calls = "", int(time.time()), 0

    def event(self, event: Event) -> bytes:
        if event.name == "message_start":
            self._id = completion_id(event.data["turn_id"])
            return self._chunk({"role": "assistant", "content": ""})
        if event.name == "delta":
            return self._chunk({"content": event.data["text"]})
        if event.name == "tool_call":
            self._calls += 1
            return self._chunk({"tool_calls": [tool_call_delta(self._calls - 1, event.data)]})
        return b""

    def end(self, answer: dict[str, Any]) -> bytes:
        choice = answer["choices"][0]
        frames = [] if self._id else [self._again(answer)]
        frames.append(self._chunk({}, choice["finish_reason"]))
        if self._include_usage:
            frames.append(self._frame({**self._head(), "choices": [], "usage": answer["usage"]}))
        return b"".join([*frames, b"data: [DONE]\n\n"])

    def error(self, problem: dict[str, Any]) -> bytes:
        return self._frame(problem if "error" in problem else error_body(problem))

    def _again(self, answer: dict[str, Any]) -> bytes:
        self._id = answer["id"]
        message = answer["choices"][0]["message"]
        calls = [tool_call_delta(place, call) for place, call in enumerate(message["tool_calls"] or ())]
        return self._chunk({"role": "assistant", "content": message["content"], **({"tool_calls": calls} if calls else {})})

    def _head(self) -> dict[str, Any]:
        return {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        usage = {"usage": None} if self._include_usage else {}
        return self._frame({**self._head(), "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], **usage})

    @staticmethod
    def _frame(data: object) -> bytes:
        return f"data: {_data(data)}\n\n".encode("utf-8", "replace")
