"""How long the embedded index takes: `python tests/bench/index_speed.py [--rows 100 1000 10000]`. Random vectors, words by Zipf's law."""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles

from tidemark.memory.ranking import MESSAGE_CANDIDATES, MESSAGE_NEIGHBOURS
from tidemark.search.documents import Turn, message_document
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Document, Query

DIMENSION = 384
NOW = datetime(2024, 1, 1, tzinfo=UTC)
WORDS = [f"w{number}x" for number in range(20_000)]
BATCH = 100
SEARCHES = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1_000, 10_000], help="of one scope, each in a scope of its own")
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedIndex(Path(folder) / "index.sqlite", "random", DIMENSION)
        for rows in parser.parse_args().rows:
            documents = [turn(chance, rows, number) for number in range(rows)]
            started = time.perf_counter()
            for first in range(0, rows, BATCH):
                index.upsert(documents[first : first + BATCH])
            print(f"{rows} rows: {rows / (time.perf_counter() - started):.0f} upserts/s; {searched(index, chance, rows)}")


def turn(chance: random.Random, rows: int, number: int) -> Document:
    document = message_document(
        id=f"{rows}-{number}", tenant_id="bench", scope=str(rows), text=said(chance, 25), speaker="ann" if number % 2 else "bob",
        role="user", created_at=NOW, conversation_id=str(number // 500), sequence=number, session=number // 25,
        earlier=[Turn("bob", said(chance, 20)), Turn("ann", said(chance, 20))],
    )  # fmt: skip
    return replace(document, vector=direction(chance))


def searched(index: EmbeddedIndex, chance: random.Random, rows: int) -> str:
    def query(**filters: str) -> Query:
        text, vector = said(chance, 6), direction(chance)
        return Query("bench", str(rows), "message", text, MESSAGE_CANDIDATES, vector, neighbours=MESSAGE_NEIGHBOURS, **filters)  # type: ignore[arg-type]

    whole = timed(lambda: index.search(query()))
    filtered = timed(lambda: index.search(query(speaker="ann")))
    return f"search p50 and p95 {whole}, with a filter {filtered}"


def timed(work: Callable[[], object]) -> str:
    seconds: list[float] = []
    for _ in range(SEARCHES):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    cuts = quantiles(seconds, n=20)
    return f"{1000 * cuts[9]:.1f} and {1000 * cuts[18]:.1f} ms"


def said(chance: random.Random, count: int) -> str:
    return " ".join(WORDS[min(len(WORDS) - 1, int(chance.paretovariate(0.6) * 200))] for _ in range(count))


def direction(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(DIMENSION)]


if __name__ == "__main__":
    main()
