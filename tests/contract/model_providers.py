"""Services as the adapters meet them: how each is scripted to answer, and what it was asked."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tidemark.models.bedrock import BedrockModel, clients
from tidemark.models.openai_compatible import OpenAICompatibleModel
from tidemark.models.ports import Model

from infra.local import processes
from infra.local.environment import emulator_python
from infra.local.progress import Progress
from tests.contract.model_servers import Reply, Server, frame, piece, serving, sse

EMULATOR_SECONDS = 60


class Provider(Protocol):
    """One service behind one adapter."""

    server: Server

    def model(self) -> Model: ...
    def says(self, *texts: str) -> Reply: ...
    def calls(self, *calls: tuple[str, str, str]) -> Reply: ...
    def sent(self) -> list[tuple[str, str]]: ...
    def tools(self) -> list[str]: ...


class Misbehaving(Provider, Protocol):
    """One that can also be scripted to fail, to be slow and to break off."""

    def says(self, *texts: str, finish: str = "stop", pause: float = 0.0, cut: bool = False) -> Reply: ...
    def fails(self, kind: str, retry_after: str | None = None) -> Reply: ...


class OpenAIProvider:
    def __init__(self, server: Server) -> None:
        self.server = server

    def model(self) -> Model:
        return OpenAICompatibleModel(f"{self.server.url}/v1", "key")

    def says(self, *texts: str, finish: str = "stop", pause: float = 0.0, cut: bool = False) -> Reply:
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        pieces = [piece({"content": text}) for text in texts]
        end = [] if cut else [piece({}, finish), {"choices": [], "model": "served", "usage": usage}]
        return Reply(sse(*pieces, *end, done=not cut), headers={"content-type": "text/event-stream"}, pause=pause, cut=cut)

    def calls(self, *calls: tuple[str, str, str]) -> Reply:
        pieces = []
        for place, (call_id, name, arguments) in enumerate(calls):
            half = len(arguments) // 2
            for number, part in enumerate((arguments[:half], arguments[half:])):
                # The id comes again with every piece, as some servers send it.
                call = {"index": place, "id": call_id, "function": {"name": name if number == 0 else None, "arguments": part}}
                pieces.append(piece({"tool_calls": [call]}))
        return Reply(sse(*pieces, piece({}, "tool_calls")), headers={"content-type": "text/event-stream"})

    def fails(self, kind: str, retry_after: str | None = None) -> Reply:
        status, code = {
            "throttled": (429, "rate_limit_exceeded"),
            "unavailable": (503, "server_error"),
            "too_long": (400, "context_length_exceeded"),
            "refused": (403, "model_not_allowed"),
        }[kind]
        headers = {"retry-after": retry_after} if retry_after else {}
        return Reply([json.dumps({"error": {"message": "no", "type": "error", "param": None, "code": code}}).encode()], status, headers)

    def sent(self) -> list[tuple[str, str]]:
        return [(message["role"], message.get("content") or "") for message in self.server.asked[-1]["messages"]]

    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.server.asked[-1].get("tools", [])]


class BedrockProvider:
    def __init__(self, server: Server) -> None:
        self.server = server

    def model(self) -> Model:
        return BedrockModel(clients("us-east-1", self.server.url))

    def _stream(self, *events: tuple[str, dict[str, Any]], pause: float = 0.0, cut: bool = False) -> Reply:
        headers = {"content-type": "application/vnd.amazon.eventstream"}
        return Reply([frame(kind, payload) for kind, payload in events], headers=headers, pause=pause, cut=cut)

    def says(self, *texts: str, finish: str = "stop", pause: float = 0.0, cut: bool = False) -> Reply:
        stop = {"stop": "end_turn", "length": "max_tokens"}[finish]
        usage = {"inputTokens": 8, "cacheReadInputTokens": 3, "outputTokens": 7, "totalTokens": 18}
        deltas: list[tuple[str, dict[str, Any]]] = [
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}}) for text in texts
        ]
        end: list[tuple[str, dict[str, Any]]] = (
            [] if cut else [("messageStop", {"stopReason": stop}), ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
        )
        return self._stream(("messageStart", {"role": "assistant"}), *deltas, *end, pause=pause, cut=cut)

    def calls(self, *calls: tuple[str, str, str]) -> Reply:
        events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
        for place, (call_id, name, arguments) in enumerate(calls):
            half = len(arguments) // 2
            started = {"contentBlockIndex": place, "start": {"toolUse": {"toolUseId": call_id, "name": name}}}
            events.append(("contentBlockStart", started))
            events += [
                ("contentBlockDelta", {"contentBlockIndex": place, "delta": {"toolUse": {"input": part}}})
                for part in (arguments[:half], arguments[half:])
            ]
            events.append(("contentBlockStop", {"contentBlockIndex": place}))
        return self._stream(*events, ("messageStop", {"stopReason": "tool_use"}))

    def fails(self, kind: str, retry_after: str | None = None) -> Reply:
        status, code = {
            "throttled": (429, "ThrottlingException"),
            "unavailable": (503, "ServiceUnavailableException"),
            "too_long": (400, "ValidationException"),
            "refused": (403, "AccessDeniedException"),
        }[kind]
        headers = {"x-amzn-errortype": code} | ({"retry-after": retry_after} if retry_after else {})
        return Reply([json.dumps({"message": "no"}).encode()], status, headers)

    def sent(self) -> list[tuple[str, str]]:
        asked = self.server.asked[-1]
        system = [("system", block["text"]) for block in asked.get("system", []) if "text" in block]
        return system + [(one["role"], "".join(block.get("text", "") for block in one["content"])) for one in asked["messages"]]

    def tools(self) -> list[str]:
        return [tool["toolSpec"]["name"] for tool in self.server.asked[-1].get("toolConfig", {}).get("tools", [])]


class EmulatedBedrockProvider:
    """The emulator's bedrock-runtime, which asks a scripted OpenAI-compatible server and answers as Bedrock.

    It hides how that server fails, waits for the end of its answer before it streams it, and knows no stop reason but end_turn, tool_use,
    malformed_tool_use and guardrail_intervened. So `fails`, `pause`, `cut` and `finish` are not here.
    """

    def __init__(self, server: Server, endpoint: str) -> None:
        self.server, self.endpoint = server, endpoint

    def model(self) -> Model:
        return BedrockModel(clients("us-east-1", self.endpoint))

    def says(self, *texts: str) -> Reply:
        return self._whole({"content": "".join(texts)})

    def calls(self, *calls: tuple[str, str, str]) -> Reply:
        made = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": given}} for call_id, name, given in calls]
        return self._whole({"content": None, "tool_calls": made})

    @staticmethod
    def _whole(message: dict[str, Any]) -> Reply:
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return Reply([json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()])

    def sent(self) -> list[tuple[str, str]]:
        return [(message["role"], message.get("content") or "") for message in self.server.asked[-1]["messages"]]

    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.server.asked[-1].get("tools", [])]


@contextmanager
def emulated_bedrock(folder: Path) -> Iterator[EmulatedBedrockProvider]:
    """An emulator of its own for bedrock-runtime, with what it needs in `folder`."""
    with serving() as server, (folder / "emulator.log").open("wb") as log:
        port = processes.free_port(None)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AWS_", "VIRTUAL_ENV", "MINISTACK_"))}
        environ = kept | {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_BEDROCK_PROXY_URL": server.url,
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
            "TMPDIR": str(folder),
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
        }
        process = subprocess.Popen(  # noqa: S603
            [str(emulator_python(Progress())), "-m", "ministack"], cwd=folder, env=environ, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            endpoint = f"http://127.0.0.1:{port}"
            started = processes.answers(f"{endpoint}/_ministack/health", EMULATOR_SECONDS, lambda: process.poll() is not None)
            assert started, (folder / "emulator.log").read_text()
            yield EmulatedBedrockProvider(server, endpoint)
        finally:
            process.terminate()
            process.wait(20)
