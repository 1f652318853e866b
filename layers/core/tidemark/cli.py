"""The command `tidemark`: `tidemark import FILE` brings a transcript into a conversation.

FILE has one JSON object a line: {"role": "user"|"assistant", "content": text, "name"?: text, "created_at"?: RFC 3339}. Each batch carries
an Idempotency-Key made of its content and place, so an interrupted import is run again into the same conversation and goes on.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx

BATCH, BATCH_BYTES = 100, 4_000_000  # a request holds 100 messages and 5 MB
FIELDS = ("role", "content", "name", "created_at")
ATTEMPTS, LONGEST_PAUSE = 6, 20.0
BAR = 30


class CommandError(Exception):
    """What is wrong, in one sentence for the terminal."""


@dataclass(frozen=True, slots=True)
class Access:
    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the file, and the number of its line."""

    number: int
    message: dict[str, Any]


# reading the file
def lines(file: Path) -> Iterator[Line]:
    """The messages of a file. Raises CommandError naming the line that is none."""
    with file.open(encoding="utf-8-sig") as text:
        try:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield Line(number, _message(line, number))
        except UnicodeDecodeError as exc:
            raise CommandError(f"{file}: not UTF-8 text") from exc


def _message(line: str, number: int) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except json.JSONDecodeError as exc:
        raise CommandError(f"line {number}: not JSON ({exc.msg})") from exc
    if not isinstance(message, dict):
        raise CommandError(f"line {number}: a JSON object is expected")
    if unknown := sorted(set(message) - set(FIELDS)):
        raise CommandError(f"line {number}: unknown field {unknown[0]!r}; known are {', '.join(FIELDS)}")
    if message.get("role") not in ("user", "assistant"):
        raise CommandError(f"line {number}: role is user or assistant")
    if not isinstance(message.get("content"), str) or not message["content"]:
        raise CommandError(f"line {number}: content is missing or empty")
    return {name: value for name, value in message.items() if value is not None}


def batches(found: Sequence[Line]) -> Iterator[list[Line]]:
    """Neighbours that fit one request."""
    batch: list[Line] = []
    size = 0
    for line in found:
        weight = len(json.dumps(line.message))
        if batch and (len(batch) == BATCH or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += weight
    if batch:
        yield batch


def key_of(batch: Sequence[Line], conversation: str) -> str:
    """The same for the same lines at the same place of the same conversation, whenever they are sent."""
    content = json.dumps([conversation, batch[0].number, [line.message for line in batch]], sort_keys=True)
    return f"import-{hashlib.sha256(content.encode()).hexdigest()}"


# the service
class Service:
    def __init__(self, client: httpx.Client, subject: str | None) -> None:
        self._client = client
        self._query = {} if subject is None else {"external_subject_id": subject}
        self._subject = subject

    def create(self, title: str | None) -> str:
        body = {name: value for name, value in (("title", title), ("external_subject_id", self._subject)) if value is not None}
        made: str = self._send("/v1/conversations", body, {}, {}).json()["id"]
        return made

    def bring(self, conversation: str, batch: Sequence[Line]) -> None:
        body = {"messages": [line.message for line in batch]}
        headers = {"Idempotency-Key": key_of(batch, conversation)}
        self._send(f"/v1/conversations/{conversation}/import", body, self._query, headers, batch)

    def _send(
        self, path: str, body: Mapping[str, Any], query: Mapping[str, str], headers: Mapping[str, str], batch: Sequence[Line] = ()
    ) -> httpx.Response:
        """The good answer. What may pass (no connection, 409 in flight, 429, 5xx) is tried again: a batch carries its key."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = self._client.post(path, json=body, params=query, headers=headers)
            except httpx.TransportError as exc:
                if attempt == ATTEMPTS or not batch:
                    raise CommandError(f"{self._client.base_url} does not answer: {exc or type(exc).__name__}") from exc
                pause = 0.5 * 2**attempt
            else:
                if answer.is_success:
                    return answer
                if attempt == ATTEMPTS or not _may_pass(answer):
                    raise CommandError(told(answer, batch))
                pause = float(answer.headers.get("retry-after", 0.5 * 2**attempt))
            time.sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError("the last attempt returns or raises")


def _may_pass(answer: httpx.Response) -> bool:
    return answer.status_code in (429, 500, 502, 503, 504) or (answer.status_code == 409 and "idempotency_in_flight" in answer.text)


def told(answer: httpx.Response, batch: Sequence[Line] = ()) -> str:
    """A problem in one line; errors of a message name its line in the file."""
    try:
        problem = answer.json()
        parts = [f"{answer.status_code} {problem['code']}: {problem['detail']}"]
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code}: {answer.text[:300]}"
    for error in problem.get("errors") or []:
        where = str(error.get("path", ""))
        place = where.split("/")[2] if where.startswith("/messages/") else ""
        line = f"line {batch[int(place)].number}" if place.isdecimal() and int(place) < len(batch) else where
        parts.append(f"{line}: {error.get('message', '')}")
    return "; ".join(parts)


# the terminal
def progress(done: int, total: int, out: TextIO) -> None:
    if not out.isatty():
        return
    filled = BAR * done // total
    out.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done}/{total} messages" + ("\n" if done == total else ""))
    out.flush()


def access(url: str | None, token: str | None, environ: Mapping[str, str]) -> Access:
    """Where to and as whom: options, then TIDEMARK_URL and TIDEMARK_API_KEY, then what `make run` wrote."""
    url, token = url or environ.get("TIDEMARK_URL"), token or environ.get("TIDEMARK_API_KEY")
    if not (url and token):
        file = Path(environ.get("TIDEMARK_STATE_DIR") or ".local") / "credentials.json"
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            url, token = url or stored["base_url"], token or stored["api_key"]
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise CommandError(f"No address or key: give --url and --token, or start the local stack (no {file}).") from exc
    return Access(str(url).rstrip("/"), str(token))


def import_file(options: argparse.Namespace, where: Access, out: TextIO) -> str:
    """Imports the file; the conversation's id."""
    found = list(lines(options.file))
    if not found:
        raise CommandError(f"{options.file}: no messages")
    headers = {"Authorization": f"Bearer {where.token}"}
    with httpx.Client(base_url=where.url, headers=headers, timeout=60, trust_env=not where.url.startswith("http://localhost")) as client:
        service = Service(client, options.subject)
        conversation: str = options.conversation or service.create(options.title)
        if not options.conversation:
            out.write(f"conversation {conversation} (after an interruption: --conversation {conversation})\n")
        done = 0
        progress(done, len(found), out)
        for batch in batches(found):
            service.bring(conversation, batch)
            done += len(batch)
            progress(done, len(found), out)
    return conversation


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="tidemark", description="Conversation memory.")
    commands = made.add_subparsers(dest="command", required=True)
    bring = commands.add_parser("import", help="bring a transcript (JSON lines) into a conversation")
    bring.add_argument("file", type=Path, help="one object a line: role, content, name?, created_at?")
    bring.add_argument("--url", help="base URL with /api (TIDEMARK_URL, or the local stack's)")
    bring.add_argument("--token", help="API key or token (TIDEMARK_API_KEY, or the local stack's)")
    bring.add_argument("--subject", help="external_subject_id of the conversation")
    bring.add_argument("--conversation", help="an existing conversation; running the same file again goes on where it stopped")
    bring.add_argument("--title", help="title of a new conversation")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        conversation = import_file(options, access(options.url, options.token, os.environ), sys.stderr)
    except (CommandError, OSError) as exc:
        print(f"tidemark: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntidemark: interrupted; run the same command with --conversation to go on", file=sys.stderr)
        return 130
    print(conversation)
    return 0
