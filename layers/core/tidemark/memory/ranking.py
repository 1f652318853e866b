"""From what the arms found to what is answered, in which order. Pure: no clock, no index, no store.

Memories are scored each for itself, in absolute terms: similarity is calibrated evidence, then recency as Clouisle defines it. Messages
are weighed against each other, because a turn is understood from its surroundings: the turns beside it, its speaker, its session.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidemark.memory.calibration import Background, Calibration, Evidence
from tidemark.search.port import Candidate
from tidemark.search.text import name_key, query_words

MatchedBy = Literal["vector", "text", "name"]

# What to ask the index for: more candidates give nothing on LoCoMo, fewer lose a point.
MESSAGE_CANDIDATES = 100
MESSAGE_NEIGHBOURS = 1
MEMORY_CANDIDATES = 100

_SECONDS_A_DAY = 86_400
# Measured on LoCoMo and BEAM: among hundreds of turns, shared words tell an answer from a near topic better than vectors do.
_CROWD = 1.9
_WORDS = 3.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate that answers. `similarity`, `lexical` and `recency` lie in 0..1; items sort by `score`."""

    candidate: Candidate
    score: float
    similarity: float
    lexical: float
    recency: float
    matched_by: tuple[MatchedBy, ...]


@dataclass(frozen=True, slots=True)
class MemoryWeights:
    half_life_days: float = 30.0
    recency_weight: float = 0.15
    min_score: float = 0.0
    doubtful: bool = False  # questions.is_doubtful


@dataclass(frozen=True, slots=True)
class MessageWeights:
    """Measured on LoCoMo and BEAM (docs/quality.md, "Retrieval")."""

    dense: float = 0.6  # of the arms' mean; the rest is BM25
    dense_long: float = 0.7  # the same among long texts, which hold many words that they are not about
    long_words: int = 200
    neighbour: float = 0.3  # of the better turn beside it
    speaker: float = 0.3  # where its speaker is the one whom the question names
    session: float = 0.5  # of the mean of its session's best turns
    session_turns: int = 3
    session_length: int = 40  # a longer session says proportionally less about each of its turns
    abstain: bool = True  # False where something else selects the turns: a question about a time span wants them all, in order


def rank_memories(
    candidates: Sequence[Candidate],
    calibration: Calibration,
    background: Background | None,
    now: datetime,
    weights: MemoryWeights | None = None,
) -> list[Ranked]:
    """What answers the question, best first; empty when nothing reaches the floor. `background` is None where there is no vector."""
    weights = weights or MemoryWeights()
    ranked = [
        _ranked_memory(candidate, evidence, calibration, now, weights)
        for candidate in candidates
        if calibration.answers(evidence := calibration.evidence(candidate, background), background, doubtful=weights.doubtful)
    ]
    return sorted((item for item in ranked if item.score >= weights.min_score), key=_best_first)


def rank_messages(
    candidates: Sequence[Candidate],
    question: str,
    calibration: Calibration,
    background: Background | None,
    weights: MessageWeights | None = None,
) -> list[Ranked]:
    """Turns that have evidence or stand beside one that has, best first; none when the best says too little for so many."""
    if not candidates:
        return []
    weights = weights or MessageWeights()
    evidence = {candidate.id: calibration.evidence(candidate, background) for candidate in candidates}
    if weights.abstain and not _answers(list(evidence.values()), calibration, background):
        return []
    best = max(one.total for one in evidence.values())
    fused = _Messages(candidates, question, weights).scores()
    kept = _with_surroundings(candidates, evidence, calibration.floor_of(background)) if weights.abstain else list(candidates)
    scale = calibration.similarity(best) / max(fused.values()) if max(fused.values()) else 0.0
    return sorted((_ranked_message(one, fused[one.id] * scale, evidence[one.id], calibration) for one in kept), key=_best_first)


def select(ranked: Sequence[Ranked], texts: Mapping[str, str], limit: int) -> list[Ranked]:
    """The first `limit` that do not say again what one in front of them said. Scores and order stay as they are."""
    chosen: list[Ranked] = []
    said: list[frozenset[str]] = []
    for item in ranked:
        if len(chosen) == limit:
            break
        words = frozenset(query_words(texts.get(item.candidate.id, "")))
        if not words or not any(_repeats(words, others) for others in said):
            chosen.append(item)
            said.append(words)
    return chosen


def recency(moment: datetime, now: datetime, half_life_days: float) -> float:
    """1 now, one half after a half-life; what lies in the future is now."""
    days = max(0.0, (now - moment).total_seconds() / _SECONDS_A_DAY)
    return math.exp(-math.log(2) / half_life_days * days)


def named_speaker(question: str, speakers: Sequence[str]) -> str | None:
    """The one speaker whom the question names, by the whole name or one word of it; None where it names several or nobody."""
    asked = set(name_key(question).split())
    named = {speaker for speaker in speakers if speaker and any(len(word) > 1 and word in asked for word in name_key(speaker).split())}
    return named.pop() if len(named) == 1 else None


# Memories


def _ranked_memory(candidate: Candidate, evidence: Evidence, calibration: Calibration, now: datetime, weights: MemoryWeights) -> Ranked:
    similarity = calibration.similarity(evidence.total)
    fresh = recency(candidate.updated_at, now, weights.half_life_days)
    score = (1 - weights.recency_weight) * similarity + weights.recency_weight * fresh
    return Ranked(candidate, score, similarity, candidate.coverage, fresh, _matched_by(candidate, evidence))


def _matched_by(candidate: Candidate, evidence: Evidence) -> tuple[MatchedBy, ...]:
    """The arms that speak for a hit. The vector counts where it says more than not."""
    found: list[MatchedBy] = []
    if evidence.vector > math.log(2) or not (candidate.coverage or candidate.name_match):
        found.append("vector")
    if candidate.coverage:
        found.append("text")
    if candidate.name_match:
        found.append("name")
    return tuple(found)


def _repeats(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two texts are made of the same words: nine in ten of both."""
    return len(words & others) >= 0.9 * len(words | others)


def _best_first(item: Ranked) -> tuple[float, datetime, str]:
    return -item.score, item.candidate.occurred_at, item.candidate.id


# Messages


def _ranked_message(candidate: Candidate, score: float, evidence: Evidence, calibration: Calibration) -> Ranked:
    return Ranked(candidate, score, calibration.similarity(evidence.total), candidate.coverage, 0.0, _matched_by(candidate, evidence))


def _answers(evidence: Sequence[Evidence], calibration: Calibration, background: Background | None) -> bool:
    """Whether a conversation answers at all. The best of many turns is near by chance, so their number raises what is asked of it."""
    words = _WORDS * max(one.text + one.name for one in evidence)
    if background is None:
        return words >= _WORDS * calibration.text_floor
    return words + max(one.vector for one in evidence) >= calibration.floor + _CROWD * math.log(len(evidence))


def _with_surroundings(candidates: Sequence[Candidate], evidence: Mapping[str, Evidence], floor: float) -> list[Candidate]:
    telling = {_place(one) for one in candidates if evidence[one.id].total >= floor}
    return [one for one in candidates if any(_place(one, step) in telling for step in (-2, -1, 0, 1, 2))]


def _place(candidate: Candidate, step: int = 0) -> tuple[str, int, int]:
    return candidate.conversation_id, candidate.session, candidate.position + step


class _Messages:
    """The fused scores of the candidates of one question."""

    def __init__(self, candidates: Sequence[Candidate], question: str, weights: MessageWeights) -> None:
        self._candidates = candidates
        self._weights = weights
        self._speaker = named_speaker(question, sorted({candidate.speaker for candidate in candidates}))

    def scores(self) -> dict[str, float]:
        own = self._own()
        beside = {place: score for place, score in zip(map(_place, self._candidates), own, strict=True)}
        near = [
            score + self._weights.neighbour * max(beside.get(_place(one, -1), 0.0), beside.get(_place(one, 1), 0.0)) + self._spoken(one)
            for one, score in zip(self._candidates, own, strict=True)
        ]
        sessions = self._sessions(near)
        return {
            one.id: score + self._weights.session * sessions[one.conversation_id, one.session]
            for one, score in zip(self._candidates, near, strict=True)
        }

    def _own(self) -> list[float]:
        dense = _normalised([one.cosine for one in self._candidates])
        words = _normalised([one.bm25 or 0.0 for one in self._candidates])
        share = self._dense() if any(dense) else 0.0
        return [share * cosine + (1 - share) * bm25 for cosine, bm25 in zip(dense, words, strict=True)]

    def _dense(self) -> float:
        """From short turns to long ones in a straight line."""
        mean = sum(one.length for one in self._candidates) / len(self._candidates)
        long = min(1.0, max(0.0, 2 * mean / self._weights.long_words - 1))
        return self._weights.dense + long * (self._weights.dense_long - self._weights.dense)

    def _spoken(self, candidate: Candidate) -> float:
        return self._weights.speaker if self._speaker is not None and candidate.speaker == self._speaker else 0.0

    def _sessions(self, scores: Sequence[float]) -> dict[tuple[str, int], float]:
        """The mean of each session's best turns, less where it is long: its known turns tell its length."""
        turns: defaultdict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
        for one, score in zip(self._candidates, scores, strict=True):
            turns[one.conversation_id, one.session].append((one.position, score))
        return {session: self._session(known) for session, known in turns.items()}

    def _session(self, known: Sequence[tuple[int, float]]) -> float:
        length = max(position for position, _ in known) - min(position for position, _ in known) + 1
        best = sorted((score for _, score in known), reverse=True)[: self._weights.session_turns]
        return sum(best) / len(best) * min(1.0, self._weights.session_length / length)


def _normalised(values: Sequence[float | None]) -> list[float]:
    """Over 0..1 within one question; where all are equal there is nothing to tell them apart."""
    present = [value for value in values if value is not None]
    low, high = min(present, default=0.0), max(present, default=0.0)
    if high <= low:
        return [1.0 if value else 0.0 for value in values]
    return [0.0 if value is None else (value - low) / (high - low) for value in values]
