"""What every search index does, whichever engine it is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Candidate, Document, IndexModelMismatchError, Placed, Query, SearchIndex

from tests.support import opensearch

MODEL = "test/toy"
DIMENSION = 8
NOON = datetime(2024, 5, 8, 12, tzinfo=UTC)


@pytest.fixture(params=["embedded", *(pytest.param(shards, marks=pytest.mark.opensearch, id=f"opensearch-{shards}") for shards in (1, 3))])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SearchIndex]:
    if request.param == "embedded":
        yield EmbeddedIndex(tmp_path / "index.sqlite", MODEL, DIMENSION)
        return
    with opensearch.indexes(MODEL, DIMENSION, shards=request.param) as made:
        yield made


def direction(*weights: float) -> list[float]:
    """A vector of the toy model."""
    return [*weights, *[0.0] * (DIMENSION - len(weights))]


def memory(id: str, text: str = "something", **fields: Any) -> Document:
    defaults: dict[str, Any] = {"tenant_id": "ten", "scope": "ada", "occurred_at": NOON, "updated_at": NOON, "vector": direction(1)}
    return Document(id=id, kind="memory", text=text, **defaults | fields)


def message(id: str, text: str = "something", **fields: Any) -> Document:
    return replace(memory(id, text, **{"conversation_id": "con", "speaker": "Ada"} | fields), kind="message")


def ask(index: SearchIndex, text: str = "", **fields: Any) -> list[Candidate]:
    defaults: dict[str, Any] = {"tenant_id": "ten", "scope": "ada", "kind": "memory", "limit": 10}
    return index.search(Query(text=text, **defaults | fields))


def ids(candidates: list[Candidate]) -> set[str]:
    assert len({candidate.id for candidate in candidates}) == len(candidates)
    return {candidate.id for candidate in candidates}


def by_words(index: SearchIndex, text: str, **fields: Any) -> set[str]:
    return ids([candidate for candidate in ask(index, text, **fields) if candidate.bm25 is not None])


# What the arms find


def test_an_empty_index_answers_nothing(index: SearchIndex) -> None:
    assert ask(index, "anything", vector=direction(1)) == []


def test_each_candidate_carries_what_both_arms_say(index: SearchIndex) -> None:
    index.upsert([memory("near", "red tea", vector=direction(3, 4)), memory("far", "green tea", vector=direction(0, 1))])
    found = {candidate.id: candidate for candidate in ask(index, "red tea", vector=direction(0, 2), limit=1)}
    assert found["near"].cosine == pytest.approx(0.8, abs=1e-5)
    assert found["far"].cosine == pytest.approx(1.0, abs=1e-5)
    assert (found["near"].bm25 or 0) > (found["far"].bm25 or 0) > 0
    assert found["near"].coverage == pytest.approx(1.0)
    assert 0 < found["far"].coverage < 1


def test_a_candidate_knows_its_place(index: SearchIndex) -> None:
    at = datetime(2023, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    later = at + timedelta(days=1)
    index.upsert([message("m", "tea", conversation_id="con_7", speaker="Bo", position=41, session=3, occurred_at=at, updated_at=later)])
    [candidate] = ask(index, "tea", kind="message")
    assert (candidate.conversation_id, candidate.speaker, candidate.position, candidate.session) == ("con_7", "Bo", 41, 3)
    assert (candidate.occurred_at, candidate.updated_at, candidate.cosine) == (at, later, None)


def test_a_document_without_vector_is_found_by_its_words(index: SearchIndex) -> None:
    index.upsert([memory("blind", "red tea", vector=None), memory("zero", "blue tea", vector=direction(0))])
    assert ids(ask(index, "tea", vector=direction(1))) == {"blind", "zero"}
    assert {candidate.cosine for candidate in ask(index, "tea", vector=direction(1))} == {None}
    assert ask(index, "coffee", vector=direction(1)) == []


def test_a_question_of_zeros_has_no_vector(index: SearchIndex) -> None:
    index.upsert([memory("one", "tea")])
    assert ask(index, "coffee", vector=direction(0)) == []


def test_a_name_is_matched_whole_and_folded(index: SearchIndex) -> None:
    index.upsert([memory("halibut", "x", name="Project  HALIBUT 🐟"), memory("hal", "y", name="Hal"), memory("cpp", "z", name="C++")])
    named = {
        text: {c.id for c in ask(index, text) if c.name_match}
        for text in ("when does project halibut end?", "Hal", "is C++ fast", "halibut")
    }
    assert named == {"when does project halibut end?": {"halibut"}, "Hal": {"hal"}, "is C++ fast": {"cpp"}, "halibut": set()}


def test_a_name_in_a_script_without_spaces_is_found_inside_a_sentence(index: SearchIndex) -> None:
    index.upsert([memory("city", "x", name="里斯本"), memory("king", "y", name="王")])
    assert {c.id for c in ask(index, "我住在里斯本吗") if c.name_match} == {"city"}
    assert {c.id for c in ask(index, "国王") if c.name_match} == set()
    assert {c.id for c in ask(index, "王") if c.name_match} == {"king"}


def test_context_is_searched_and_weighs_less_than_the_text(index: SearchIndex) -> None:
    index.upsert([message("said", "the kiln is broken"), message("after", "the oven is broken", context="Bo: what about the kiln")])
    found = {candidate.id: candidate.bm25 or 0 for candidate in ask(index, "kiln", kind="message")}
    assert found["said"] > found["after"] > 0


def test_neighbours_come_along_within_their_session(index: SearchIndex) -> None:
    turns = [
        message(f"m{number}", "tea" if number == 4 else "talk", position=number, session=1 if number < 5 else 2, vector=None)
        for number in range(9)
    ]
    index.upsert([*turns, message("other", "talk", conversation_id="con_2", position=3, session=1, vector=None)])
    assert ids(ask(index, "tea", kind="message")) == {"m4"}
    assert ids(ask(index, "tea", kind="message", neighbours=1)) == {"m3", "m4"}
    assert ids(ask(index, "tea", kind="message", neighbours=2, speaker="Bo")) == set()


def test_only_the_best_of_each_arm_bring_their_neighbours(index: SearchIndex) -> None:
    near = [message(f"n{place}", "talk", position=place, vector=direction(1, 0.1 * place)) for place in (10, 20, 30)]
    said = [message(f"s{place}", "tea " * (7 - place // 10), position=place, vector=direction(-1)) for place in (40, 50, 60)]
    beside = [message(f"b{one.position + 1}", "else", position=one.position + 1, vector=direction(-1)) for one in near + said]
    index.upsert([*near, *said, *beside])
    question: dict[str, Any] = {"kind": "message", "text": "tea", "vector": direction(1), "limit": 3, "neighbours": 1}
    hits = {one.id for one in near + said}
    assert ids(ask(index, **question, neighbours_of=1)) - hits == {"b11", "b41"}
    assert ids(ask(index, **question, neighbours_of=2)) - hits == {"b11", "b21", "b41", "b51"}
    assert ids(ask(index, **question)) - hits == {one.id for one in beside}


# Words


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The deploy gate is SMOKE-1.", "SMOKE-1"),
        ("Mail ops@harbour.example about it", "ops@harbour.example"),
        ("it lies in /usr/local/lib/tide.so", "/usr/local/lib/tide.so"),
        ("the build v2.10.3-rc1 failed", "v2.10.3-rc1"),
        ("house number 9077", "9077"),
        ("the 🦑 is our mascot", "🦑"),
        ("混合检索方案", "检索"),
        ("我住在里斯本", "本"),
        ("寿司が好きです", "寿司"),
        ("ラーメンを食べた", "ラーメン"),
        ("서울에 삽니다", "서울"),
        ("ฉันชอบกาแฟ", "กาแฟ"),
        ("Привет, как дела", "ПРИВЕТ"),
        ("Ada s'est rendue au café à Besançon", "besancon cafe"),
        ("My favourite colours are teal", "favorite color"),
        ("She was running and swam", "run"),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("I write C++ and C#", "c#"),
        ("مرحبا بالعالم", "مرحبا"),
    ],
)
def test_words_of_every_script_are_found(index: SearchIndex, text: str, query: str) -> None:
    index.upsert([memory("wanted", text, vector=None), memory("other", "nothing of that kind, SMOKE-11, 天气", vector=None)])
    found = {candidate.id: candidate.bm25 or 0 for candidate in ask(index, query)}
    assert max(found, key=lambda id: found[id], default=None) == "wanted"


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "the",
        "what is the",
        "*",
        '"',
        "'",
        "AND OR NOT",
        "(((",
        "NEAR(",
        "`||`",
        "name:*",
        "-",
        "~^$",
        "%",
        "\\",
        "/.*/",
        "\x00",
        "\ufeff",
        "\u202e",
        "是的吗",
    ],
)
def test_a_question_without_words_finds_nothing_by_words(index: SearchIndex, query: str) -> None:
    index.upsert([memory("one", "the red tea and or not", vector=None), memory("two", "当然", vector=None)])
    assert by_words(index, query) == set()
    assert ids(ask(index, query, vector=direction(1))) == set()


@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE documents; --",
        'tea" OR "1"="1',
        "tea*",
        "NOT tea",
        "tea NEAR/2 x",
        "text:tea",
        "{tea}",
        "tea' OR 1=1",
        "[tea]",
        "tea\x00",
        "x " * 20_000 + "tea",
    ],
)
def test_query_syntax_is_only_words(index: SearchIndex, query: str) -> None:
    index.upsert([memory("tea", "red tea"), memory("coffee", "black coffee")])
    assert by_words(index, query) in ({"tea"}, set())
    assert by_words(index, "coffee") == {"coffee"}


@given(text=st.text(max_size=200))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_stored_and_asked(index: SearchIndex, text: str) -> None:
    index.upsert([memory("any", text, name=text[:50], vector=None)])
    assert ids(ask(index, text)) <= {"any"}


# Filters


FILTERED = [
    message("a", "tea", conversation_id="con_1", speaker="Ada", session=1, position=1, occurred_at=NOON),
    message("b", "tea", conversation_id="con_1", speaker="Bo", session=2, position=2, occurred_at=NOON + timedelta(days=1)),
    message("c", "tea", conversation_id="con_2", speaker="ÅSA", session=10, position=1, occurred_at=NOON + timedelta(days=2)),
]


@pytest.mark.parametrize("arm", ["words", "vector"])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"a", "b", "c"}),
        ({"conversation_ids": {"con_1"}}, {"a", "b"}),
        ({"conversation_ids": {"con_1", "con_2"}}, {"a", "b", "c"}),
        ({"conversation_ids": {"con"}}, set()),
        ({"conversation_ids": {"con_*"}}, set()),
        ({"speaker": "bo"}, {"b"}),
        ({"speaker": "asa"}, {"c"}),
        ({"speaker": ""}, set()),
        ({"session": 10}, {"c"}),
        ({"session": 1}, {"a"}),
        ({"occurred_from": NOON + timedelta(days=1)}, {"b", "c"}),
        ({"occurred_to": NOON + timedelta(days=1)}, {"a"}),
        ({"occurred_from": NOON, "occurred_to": NOON + timedelta(microseconds=1)}, {"a"}),
        ({"occurred_from": NOON.replace(tzinfo=None)}, {"a", "b", "c"}),
        ({"updated_from": NOON + timedelta(seconds=1)}, set()),
        ({"speaker": "Ada", "session": 2}, set()),
        ({"kind": "memory"}, set()),
        ({"scope": "ad"}, set()),
        ({"tenant_id": "TEN"}, set()),
    ],
)
def test_every_filter_holds_in_each_arm(index: SearchIndex, arm: str, filters: dict[str, Any], expected: set[str]) -> None:
    index.upsert(FILTERED)
    question: dict[str, Any] = {"text": "tea"} if arm == "words" else {"text": "", "vector": direction(1)}
    assert ids(ask(index, **{"kind": "message"} | question | filters)) == expected


@pytest.mark.parametrize(
    ("types", "expected"), [({"fact"}, {"f"}), ({"fact", "goal"}, {"f", "g"}), ({"fac"}, set()), ({"fact' OR '1'='1"}, set())]
)
def test_the_type_filter_is_exact(index: SearchIndex, types: set[str], expected: set[str]) -> None:
    index.upsert([memory("f", "tea", entity_type="fact", name="tea"), memory("g", "tea", entity_type="goal", name="tea")])
    assert ids(ask(index, "tea", vector=direction(1), entity_types=types)) == expected


@pytest.mark.parametrize(
    "value",
    [
        "*",
        "?",
        '"',
        "'",
        "a,b",
        "AND",
        "team-a OR team-b",
        "[* TO *]",
        "`x`",
        "{}",
        "\\",
        "((",
        "_all",
        "\x00",
        "a\nb",
        " ",
        "团队",
        "🦑",
        "x" * 40_000,
    ],
)
def test_values_of_filters_are_taken_literally(index: SearchIndex, value: str) -> None:
    fields = {"conversation_id": value, "entity_type": value, "speaker": value}
    index.upsert([message("wanted", "tea", **fields), message("other", "tea", **{name: f"{value}x" for name in fields})])
    for filters in ({"conversation_ids": {value}}, {"entity_types": {value}}, {"speaker": value}):
        assert ids(ask(index, "tea", kind="message", vector=direction(1), **filters)) == {"wanted"}
    index.delete_conversation("ten", value)
    assert ids(ask(index, "tea", kind="message", vector=direction(1))) == {"other"}


@pytest.mark.parametrize("limit", [1, 5, 50])
@pytest.mark.parametrize("arm", ["words", "vector"])
def test_a_selective_filter_still_fills_the_page(index: SearchIndex, limit: int, arm: str) -> None:
    """Fifty of 550 match the filter, and all others are nearer and say the word more often."""
    crowd = [message(f"x{n}", "tea tea tea", speaker="Bo", vector=direction(1, 0.001 * n)) for n in range(500)]
    wanted = [message(f"w{n}", "tea and much else to say", speaker="Ada", vector=direction(0.2, 1)) for n in range(50)]
    index.upsert(crowd + wanted)
    question: dict[str, Any] = {"text": "tea"} if arm == "words" else {"vector": direction(1)}
    found = ids(ask(index, kind="message", limit=limit, speaker="Ada", **question))
    assert len(found) == limit
    assert all(id.startswith("w") for id in found)


# Isolation


def test_neither_arm_crosses_scopes_tenants_or_kinds(index: SearchIndex) -> None:
    own = memory("own", "tea", name="tea")
    others = [replace(own, id="s", scope="bo"), replace(own, id="t", tenant_id="ten2"), replace(own, id="k", kind="message")]
    index.upsert([own, *others, replace(own, tenant_id="ten2")])
    assert ids(ask(index, "tea")) == ids(ask(index, "", vector=direction(1))) == {"own"}


def test_the_scores_of_one_scope_do_not_tell_about_another(index: SearchIndex) -> None:
    index.upsert([memory("one", "tea and coffee"), memory("two", "tea")])
    before = ask(index, "tea coffee", vector=direction(1))
    index.upsert([memory(f"s{n}", "coffee " * n, scope="bo") for n in range(1, 30)])
    index.upsert([memory(f"t{n}", "coffee", tenant_id="ten2") for n in range(30)])
    assert sorted(ask(index, "tea coffee", vector=direction(1)), key=lambda c: c.id) == sorted(before, key=lambda c: c.id)


NAMES = st.text(alphabet="aA/#:%\x00 ", max_size=3)


@given(places=st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=4, unique=True))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_crafted_tenant_or_scope_reaches_another(index: SearchIndex, places: list[tuple[str, str]]) -> None:
    index.upsert([memory(f"{tenant}|{scope}", "tea", tenant_id=tenant, scope=scope) for tenant, scope in places])
    for tenant, scope in places:
        assert ids(ask(index, "tea", vector=direction(1), tenant_id=tenant, scope=scope)) == {f"{tenant}|{scope}"}
    for tenant, _ in places:
        index.delete_scope(tenant, None)


# Changes


def test_upsert_replaces_by_tenant_and_id(index: SearchIndex) -> None:
    index.upsert([memory("one", "red tea", name="Red")])
    index.upsert([memory("one", "black coffee", name="Black", vector=direction(0, 1))] * 2)
    assert by_words(index, "tea") == set()
    [candidate] = ask(index, "black coffee", vector=direction(0, 1))
    assert candidate.cosine == pytest.approx(1.0)
    assert candidate.name_match


def test_an_older_update_never_replaces_a_newer_one(index: SearchIndex) -> None:
    new, old = memory("one", "new tea", updated_at=NOON), memory("one", "old coffee", updated_at=NOON - timedelta(microseconds=1))
    for batch in ([new, old], [old], [old, new]):
        index.upsert(batch)
        assert by_words(index, "coffee") == set()
        assert by_words(index, "tea") == {"one"}


def test_an_update_without_vector_drops_the_old_one(index: SearchIndex) -> None:
    index.upsert([memory("one", "tea")])
    index.upsert([memory("one", "coffee", vector=None)])
    assert ask(index, "", vector=direction(1)) == []


def test_an_update_may_move_a_document_to_another_scope(index: SearchIndex) -> None:
    index.upsert([memory("one", "tea")])
    index.upsert([memory("one", "tea", scope="bo")])
    assert ask(index, "tea", vector=direction(1)) == []
    assert ids(ask(index, "tea", vector=direction(1), scope="bo")) == {"one"}


def test_what_is_deleted_is_gone_from_every_arm(index: SearchIndex) -> None:
    index.upsert([memory("one", "tea", name="tea"), memory("two", "tea"), memory("one", "tea", tenant_id="ten2")])
    index.delete("ten", ["one", "unknown"])
    index.delete("ten", [])
    assert ids(ask(index, "tea", vector=direction(1))) == {"two"}
    assert ids(ask(index, "tea", tenant_id="ten2")) == {"one"}


def test_a_conversation_goes_with_all_its_messages_of_that_tenant(index: SearchIndex) -> None:
    index.upsert([message(f"m{n}", "tea", conversation_id=f"con_{n % 2}") for n in range(6)])
    index.upsert([message("foreign", "tea", conversation_id="con_0", tenant_id="ten2"), memory("free", "tea")])
    index.delete_conversation("ten", "con_0")
    index.delete_conversation("ten", "")
    assert ids(ask(index, "tea", kind="message", vector=direction(1))) == {"m1", "m3", "m5"}
    assert ids(ask(index, "tea", kind="message", tenant_id="ten2")) == {"foreign"}
    assert ids(ask(index, "tea")) == {"free"}


def test_a_scope_or_a_whole_tenant_goes(index: SearchIndex) -> None:
    index.upsert([memory("a", "tea"), memory("b", "tea", scope="bo"), memory("c", "tea", scope="cy"), memory("d", "tea", tenant_id="ten2")])
    index.upsert([message("m", "tea")])
    index.delete_scope("ten", "ada")
    assert [ids(ask(index, "tea", scope=scope)) for scope in ("ada", "bo", "cy")] == [set(), {"b"}, {"c"}]
    assert ids(ask(index, "tea", kind="message")) == set()
    index.delete_scope("ten", None)
    assert ids(ask(index, "tea", scope="bo")) == set()
    assert ids(ask(index, "tea", tenant_id="ten2")) == {"d"}


def test_scores_stay_right_after_many_changes(index: SearchIndex) -> None:
    """Statistics are kept, not counted anew: what came and went leaves no trace."""
    index.upsert([memory("one", "tea and coffee"), memory("two", "tea")])
    before = sorted(ask(index, "tea coffee", vector=direction(1)), key=lambda c: c.id)
    for _ in range(3):
        index.upsert([memory(f"x{n}", "coffee " * n, updated_at=NOON + timedelta(seconds=n)) for n in range(1, 20)])
        index.upsert([memory("one", "tea and coffee"), memory("two", "tea")])
        index.delete("ten", [f"x{n}" for n in range(1, 20)])
    assert sorted(ask(index, "tea coffee", vector=direction(1)), key=lambda c: c.id) == before


# Against the table


def test_what_the_index_lacks_or_holds_in_an_older_state_or_without_vector_is_stale(index: SearchIndex) -> None:
    held, older, blind = memory("held"), memory("older"), memory("blind")
    index.upsert([held, older, replace(blind, vector=None), memory("foreign", tenant_id="ten2")])
    newer = replace(older, updated_at=NOON + timedelta(microseconds=1))
    asked = [held, newer, blind, memory("absent"), memory("foreign")]
    assert {one.id for one in index.stale(asked)} == {"older", "blind", "absent", "foreign"}
    assert index.stale([replace(held, updated_at=NOON - timedelta(days=1))]) == []
    assert index.stale([]) == []


def test_a_sample_says_where_the_things_behind_it_should_be(index: SearchIndex) -> None:
    index.upsert([memory("a", conversation_id="con"), message("b", tenant_id="ten2", scope="bo")])
    assert sorted(index.sample(5), key=lambda one: one.id) == [
        Placed("ten", "ada", "memory", "con", "a", NOON),
        Placed("ten2", "bo", "message", "con", "b", NOON),
    ]
    assert len(index.sample(1)) == 1


# Several at once


def test_writers_and_readers_at_once_leave_the_newest_state(index: SearchIndex) -> None:
    def work(worker: int) -> None:
        for number in range(8):
            index.upsert([memory(f"shared{number}", f"tea worker{worker}x", updated_at=NOON + timedelta(seconds=worker))])
            index.upsert([memory(f"own{worker}-{number}", "tea", scope=f"scope{worker}")])
            assert ids(ask(index, "tea", vector=direction(1), limit=50)) <= {f"shared{n}" for n in range(8)}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert by_words(index, "worker3x", limit=50) == {f"shared{number}" for number in range(8)}
    assert all(len(ask(index, "tea", scope=f"scope{worker}", limit=50)) == 8 for worker in range(4))


# Models


def test_a_vector_of_another_dimension_is_refused_and_nothing_is_stored(index: SearchIndex) -> None:
    with pytest.raises(IndexModelMismatchError):
        index.upsert([memory("good", "tea"), memory("bad", "tea", vector=[1.0])])
    with pytest.raises(IndexModelMismatchError):
        ask(index, "tea", vector=[1.0])
    assert ask(index, "tea") == []
