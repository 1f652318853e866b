"""Section I of the reports: search, filters, storage, on both indexes. Each test names its case."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from opensearchpy.exceptions import RequestError
from tidemark import bootstrap
from tidemark.memory.scope import Scope
from tidemark.models.ports import ModelError
from tidemark.search.documents import with_vectors
from tidemark.search.port import Document, IndexModelMismatchError, Query, SearchUnavailableError

from tests.support import events, metrics, opensearch
from tests.support.models import HashEmbedder, ScriptedModel
from tests.support.world import Client, World, use

NOON = datetime(2024, 5, 8, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Instead of the folder's: one of the two indexes is a server on this machine."""


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def aws(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with opensearch.searched_world(tmp_path, request.param) as made:
        yield made


def concept(client: Client, name: str, entity_type: str = "concept", **more: Any) -> str:
    made: str = client.post("/v1/memories/entities", {"name": name, "entity_type": entity_type, **more})["id"]
    return made


def names(client: Client, query: str, **body: Any) -> list[str]:
    return [item["entity"]["name"] for item in client.search(query, **body)["items"]]


def sessions(client: Client, q: str, conversation: str, **query: str) -> list[str]:
    return [hit["text"] for hit in client.walk("/v1/search/sessions", q=q, conversation_id=conversation, limit="50", **query)]


# Filters


def test_case_142_a_star_in_a_filter_is_a_star(aws: World, ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "The kiln is fired at dawn."})
    for star in ("*", "?", "con*", "_all", "%"):
        assert ada.refused("POST", "/v1/memories/search", {"query": "kiln", "entity_types": [star]}) == (422, "validation_failed")
        assert names(ada, "When is the kiln fired?", speaker=star) == []
        stranger = aws.key(ada.caller.tenant_id, star)
        assert stranger.search("When is the kiln fired?")["abstained"] is True
        stranger.post("/v1/memories/remember", {"text": "The kiln is fired at noon."})
        assert any("noon" in name for name in names(stranger, "When is the kiln fired?"))
        assert not any("noon" in name for name in names(ada, "When is the kiln fired?"))


@pytest.mark.parametrize(("one", "other"), [("team-a", "team-b"), ("Team A", "team a")])
def test_case_146_ids_are_whole_values(aws: World, ada: Client, one: str, other: str) -> None:
    """Ids with a part in common would meet where a filter works on analysed text."""
    tenant = ada.caller.tenant_id
    for subject in (one, other):
        client = aws.key(tenant, subject)
        client.post("/v1/memories/remember", {"text": f"The kiln is fired at dawn by {len(subject)}{subject[-1]}."})
        client.say(client.conversation(workspace_id=subject), "The mast is nineteen metres tall.")
    aws.index()
    for subject in (one, other):
        client = aws.key(tenant, subject)
        found = client.search("When is the kiln fired?", sources=["memories", "messages"])
        assert {item["entity"]["scope"]["external_subject_id"] for item in found["items"]} == {subject}
    first, second = (ada.conversation(workspace_id=workspace) for workspace in (one, other))
    ada.say(first, "The sail is red.")
    ada.say(second, "The sail is blue.")
    aws.index()
    told = sessions(ada, "sail", first, scope="current_workspace", user_intent="compare")
    assert any("red" in text for text in told)
    assert not any("blue" in text for text in told)


def test_case_146_the_mapping_is_explicit_and_takes_nothing_else(aws: World, ada: Client) -> None:
    if bootstrap.settings().search == "embedded":
        pytest.skip("a table has columns")
    concept(ada, "kiln")
    aws.index()
    index = bootstrap.opensearch_index()
    [described] = bootstrap.opensearch().indices.get_mapping(index=index.alias).values()
    properties = described["mappings"]["properties"]
    exact = ("key", "partition", "tenant", "scope", "kind", "entity_type", "conversation", "workspace", "speaker_key", "role")
    assert {properties[name]["type"] for name in exact} == {"keyword"}
    with pytest.raises(RequestError, match="strict_dynamic_mapping_exception"):
        bootstrap.opensearch().index(index=index.alias, body={"surprise": "x"})


def test_case_148_150_151_a_selective_filter_fills_its_page(aws: World, ada: Client) -> None:
    """The many of another type are nearer to the question; the page is of those that the filter leaves."""
    for number in range(110):
        concept(ada, f"harbour crane harbour crane {number}x")
    for number in range(15):
        concept(ada, f"repair the harbour crane {number}y by {number + 1} June", "goal")
    aws.index()
    for top_k in (1, 10, 15):
        found = names(ada, "harbour crane", entity_types=["goal"], top_k=top_k)
        assert len(found) == top_k
        assert all(name.startswith("repair") for name in found)


def test_case_149_a_time_filters_messages_and_facts(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    days = [f"2024-05-{day:02}T10:00:00Z" for day in (6, 7, 8, 8, 9)]
    said = [{"role": "user", "content": f"We talked about mooring number {place}x.", "created_at": at} for place, at in enumerate(days)]
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": said})
    aws.index()
    found = ada.search("What did we talk about on 8 May 2024?", sources=["messages"])
    assert sorted(hit["created_at"][:10] for hit in found["messages"]) == ["2024-05-08", "2024-05-08"]
    assert found["time_filter"]["from"].startswith("2024-05-08")
    concept(ada, "mooring plan")
    aws.index()
    aws.clock.forward(days=10)
    concept(ada, "mooring rope")
    aws.index()
    assert sorted(names(ada, "mooring")) == ["mooring plan", "mooring rope"]
    assert names(ada, "mooring", time_window_days=5) == ["mooring rope"]


def test_case_149_an_index_that_is_being_built_doubles_no_filtered_hit(aws: World, ada: Client) -> None:
    if bootstrap.settings().search == "embedded":
        pytest.skip("there is one file")
    concept(ada, "mooring rope", "goal")
    aws.index()
    index = bootstrap.opensearch_index()
    index.create(f"{index.alias}.building", serving=False)
    aws.patch.setattr("tidemark.search.opensearch.TARGETS_SECONDS", 0)
    concept(ada, "mooring plan", "goal")
    aws.index()
    assert sorted(names(ada, "mooring", entity_types=["goal"], time_window_days=5)) == ["mooring plan", "mooring rope"]


def test_case_157_numbers_are_compared_as_numbers(aws: World, ada: Client) -> None:
    ids = [f"m{number}" for number in range(1, 13)]
    bootstrap.index().upsert(
        [
            Document(
                id, "message", "ten", "ada", "tea", NOON, NOON, conversation_id="con", position=number, session=number,
            )
            for number, id in enumerate(ids, 1)
        ]
    )  # fmt: skip
    for session in (1, 2, 9, 10, 12):
        assert [one.id for one in bootstrap.index().search(Query("ten", "ada", "message", "tea", 50, session=session))] == [f"m{session}"]


def test_case_160_a_subject_is_no_path(aws: World, ada: Client) -> None:
    """No prefix of a subject and nothing below it: only the very same."""
    tenant, subjects = ada.caller.tenant_id, ["team", "team/alpha", "team/", "team:alpha", "tea"]
    for subject in subjects:
        client = aws.key(tenant, subject)
        assert client.search("When is the kiln fired?")["abstained"] is True, subject
        assert client.memories() == []
        client.post("/v1/memories/remember", {"text": "The kiln is fired at dawn."})
    assert ada.send("DELETE", f"/v1/subjects/{quote('team/', safe='')}").status == 200
    left = [subject for subject in subjects if aws.key(tenant, subject).search("When is the kiln fired?")["items"]]
    assert left == ["team", "team/alpha", "team:alpha", "tea"]


# Failures


def test_case_143_a_search_that_is_away_is_not_an_empty_one(aws: World, ada: Client, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = ada.conversation()
    assert ada.search("tea")["abstained"] is True  # empty because nothing is there

    def away(*_: Any, **__: Any) -> None:
        raise SearchUnavailableError

    aws.patch.setattr(type(bootstrap.index()), "search", away)
    metrics.told(capsys, "SearchUnavailable")
    assert ada.refused("POST", "/v1/memories/search", {"query": "tea"}) == (503, "search_unavailable")
    assert ada.refused("GET", "/v1/search/sessions", q="x", conversation_id=conversation) == (503, "search_unavailable")
    assert ada.refused("POST", f"/v1/conversations/{conversation}/recall", {"query": "x"}) == (503, "search_unavailable")
    assert ada.refused("POST", "/v1/memories/forget", {"query": "tea"}) == (503, "search_unavailable")
    assert sum(metrics.told(capsys, "SearchUnavailable")) == 4
    assert ada.say(conversation, "A turn goes on without it.")["metadata"]["memory_used"] is False


def test_case_152_another_embedding_model_drops_nothing_and_says_so(aws: World, ada: Client, capsys: pytest.CaptureFixture[str]) -> None:
    before = concept(ada, "heliotrope one")
    aws.index()
    first = bootstrap.embedder()
    use(aws.patch, "embedder", HashEmbedder())  # of 32 dimensions
    with pytest.raises(IndexModelMismatchError, match="32"):
        bootstrap.index().search(Query("ten", "ada", "memory", "x", 5))
    assert ada.refused("POST", "/v1/memories/search", {"query": "heliotrope"}) == (503, "search_unavailable")
    assert ada.say(ada.conversation(), "heliotrope?")["metadata"]["memory_used"] is False
    remembered = ada.post("/v1/memories/remember", {"text": "The kiln is fired at dawn."})["entities"]
    assert sum(metrics.told(capsys, "IndexingDeferred")) >= 1
    after = concept(ada, "heliotrope two")
    changes = aws.changes()
    with pytest.raises(IndexModelMismatchError):
        aws.invoke("indexer", events.stream(changes))  # the batch comes again, it is not dropped
    use(aws.patch, "embedder", first)
    aws.invoke("indexer", events.stream(changes))
    assert {item["entity"]["id"] for item in ada.search("heliotrope")["items"]} == {before, after}
    assert remembered[0]["id"] in {item["entity"]["id"] for item in ada.search("When is the kiln fired?")["items"]}


class Short(HashEmbedder):
    """Leaves out what is empty, as some servers do."""

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return super().embed_passages([text for text in texts if text])


def test_case_153_vectors_are_counted(aws: World) -> None:
    documents = [Document(id, "memory", "ten", "ada", text, NOON, NOON) for id, text in (("a", "a"), ("", ""), ("b", "b"))]
    with pytest.raises(ModelError, match="2 vectors for 3 texts"):
        with_vectors(documents, Short())
    assert [one.vector for one in with_vectors(documents[::2], Short())] == HashEmbedder().embed_passages(["a", "b"])


def test_case_153_an_embedder_that_answers_too_little_fails_no_request(aws: World, ada: Client) -> None:
    class LastLost(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
            return super().embed_passages(texts)[:-1]

    use(aws.patch, "embedder", LastLost())
    ada.post("/v1/memories/remember", {"text": "The kiln is fired at dawn."})
    assert any("dawn" in name for name in names(ada, "When is the kiln fired?"))  # by its words


@pytest.mark.parametrize("text", ["", "   ", "\t\u3000\n"])
def test_case_153_empty_texts_reach_no_embedder_and_no_engine(aws: World, ada: Client, text: str) -> None:
    asked: list[Any] = []

    def note(*_: Any) -> list[Any]:
        asked.append(1)
        return []

    aws.patch.setattr(type(bootstrap.index()), "search", note)
    aws.patch.setattr(type(bootstrap.embedder()), "embed_query", note)
    conversation = ada.conversation()
    assert ada.refused("POST", "/v1/memories/search", {"query": text}) == (422, "validation_failed")
    assert ada.refused("POST", "/v1/memories/forget", {"query": text})[0] == 422
    assert ada.refused("POST", "/v1/memories/remember", {"text": text})[0] == 422
    assert ada.refused("GET", "/v1/search/sessions", q=text, conversation_id=conversation)[0] == 422
    assert ada.refused("POST", f"/v1/conversations/{conversation}/recall", {"query": text})[0] == 422
    assert asked == []


@pytest.mark.parametrize("text", ["", "   ", "\t\u3000\n", None])
def test_case_167_no_query_is_refused_on_every_way_to_ask(aws: World, ada: Client, text: str | None) -> None:
    concept(ada, "kiln")
    conversation = ada.conversation()
    given = {} if text is None else {"query": text}
    for path in ("/v1/memories/search", "/v1/memories/forget", f"/v1/conversations/{conversation}/recall"):
        assert ada.refused("POST", path, given) == (422, "validation_failed"), path
    words = {} if text is None else {"q": text}
    assert ada.refused("GET", "/v1/search/sessions", conversation_id=conversation, **words) == (422, "validation_failed")
    here = {"conversation_id": conversation}
    for tool, more in (("search_memory", {}), ("forget", {"dry_run": False}), ("session_search", here), ("recall_context", here)):
        result = ada.tool(tool, **given, **more).body["result"]
        assert (result["isError"], "validation_failed" in str(result)) == (True, True), tool
    assert [one["name"] for one in ada.memories()] == ["kiln"]


@pytest.mark.parametrize("text", ["\u200b", "\ufeff\u2060", "\u00ad", "…", "*", "%", "_", ".*", "\x00"])
def test_case_167_a_query_without_a_word_finds_and_forgets_nothing(aws: World, ada: Client, text: str) -> None:
    concept(ada, "kiln")
    conversation = ada.conversation()
    ada.say(conversation, "The kiln is fired at dawn.")
    aws.index()
    found = ada.search(text, sources=["memories", "messages"])
    assert (found["items"], found["messages"], found["abstained"]) == ([], [], True)
    assert sessions(ada, text, conversation) == []
    assert ada.post(f"/v1/conversations/{conversation}/recall", {"query": text})["items"] == []
    assert ada.post("/v1/memories/forget", {"query": text, "dry_run": False})["deleted"] == 0
    assert ada.memories(q=text) == []
    assert [one["name"] for one in ada.memories()] == ["kiln"]


def test_case_167_everything_is_listed_by_the_page(aws: World, ada: Client) -> None:
    for number in range(22):
        concept(ada, f"kiln {number}")
    for q in ({}, {"q": ""}):
        page = ada.get("/v1/memories/entities", **q)
        assert (len(page["items"]), page["total"]) == (20, 22)


# Words


PARTS = {"我们采用混合检索方案": "检索", "ラーメンを食べるのが好きです": "ラーメン", "서울에 삽니다": "서울", "ฉันชอบกาแฟ": "กาแฟ"}


def test_case_154_words_of_scripts_without_spaces_are_found_by_a_part(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    for text in PARTS:
        ada.say(conversation, text)
        concept(ada, text)
    concept(ada, "天气很好")
    aws.index()
    for text, query in PARTS.items():
        assert any(text in hit for hit in sessions(ada, query, conversation))
        best = ada.search(query)["items"][0]
        assert (best["entity"]["name"], "text" in best["matched_by"]) == (text, True)


def test_case_154_no_words_are_no_lexical_hits(aws: World, ada: Client) -> None:
    concept(ada, "the kiln")
    concept(ada, "我们的方案")
    aws.index()
    for query in ("。、！", "?!", "the", "- -"):
        assert all("text" not in item["matched_by"] for item in ada.search(query)["items"])


RESERVED = [
    "main",
    "main AND",
    '"main',
    "main*",
    "main OR (",
    "NEAR(main",
    "-main",
    "main|x",
    "`main`",
    "main:x",
    "{main}",
    "main^2",
    "main~",
]


def test_case_159_query_syntax_is_text(aws: World, ada: Client) -> None:
    client = aws.key(ada.caller.tenant_id, "main")
    concept(client, "main branch")
    concept(client, "kiln")
    conversation = client.conversation()
    client.say(conversation, "The main branch is called main.")
    aws.index()
    assert any("main branch" in hit for hit in sessions(client, "main", conversation))
    for words in RESERVED:
        assert names(client, words)[:1] == ["main branch"], words
        assert client.send("GET", "/v1/search/sessions", q=words, conversation_id=conversation).status == 200


def test_case_159_a_question_of_stop_words_is_left_to_the_other_arms(aws: World, ada: Client) -> None:
    concept(ada, "the kiln")
    aws.index()
    found = bootstrap.index().search(Query(ada.caller.tenant_id, Scope(kind="subject", external_subject_id="ada").key, "memory", "the", 5))
    assert found == []
    assert all(item["matched_by"] == ["vector"] for item in ada.search("the")["items"])


# Pages


def test_case_155_and_161_pages_are_full_and_tell_each_hit_once(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    said = [{"role": "user", "content": f"The mooring rope {number}x is wet."} for number in range(23)]
    ids = set(ada.post(f"/v1/conversations/{conversation}/import", {"messages": said})["message_ids"])
    aws.index()
    told: list[str] = []
    more: dict[str, str] = {}
    sizes = []
    while True:
        page = ada.get("/v1/search/sessions", q="mooring rope", conversation_id=conversation, limit="5", **more)
        sizes.append(len(page["items"]))
        told += [hit["message_id"] for hit in page["items"]]
        ada.say(conversation, "Something else.")  # a walk goes on while writes happen
        if page["next_cursor"] is None:
            break
        more = {"cursor": page["next_cursor"]}
    assert sizes == [5, 5, 5, 5, 3]
    assert (set(told), len(told)) == (ids, len(ids))


def test_case_161_a_walk_ends_and_counts_everything(aws: World, ada: Client) -> None:
    made = {ada.conversation() for _ in range(23)}
    assert {one["id"] for one in ada.walk("/v1/conversations", limit="5")} == made
    for number in range(23):
        concept(ada, f"n{number}")
    pages = [ada.get("/v1/memories/entities", page=str(page), page_size="10") for page in (1, 2, 3, 4)]
    assert [(len(page["items"]), page["total"]) for page in pages] == [(10, 23), (10, 23), (3, 23), (0, 23)]


# Relevance


FACTS = ("My sister lives in Bergen.", "I am allergic to walnuts.", "My project Halibut ends in June.", "I play the cello.")


def test_case_162_nonsense_brings_nothing(aws: World, ada: Client) -> None:
    for text in FACTS:
        ada.post("/v1/memories/remember", {"text": text})
    for query in ("zzqqxx", "asdf jkl qwer", "xkcd99 vbnm", "qqq", "🦑🦑🦑", "???", "锟斤拷烫烫烫", "0000000"):
        found = ada.search(query, sources=["memories", "messages"])
        assert (found["items"], found["messages"], found["abstained"]) == ([], [], True), query
        assert ada.say(ada.conversation(), query)["metadata"]["memory_used"] is False, query


def test_case_164_what_is_recalled_stands_in_a_request_once(aws: World, ada: Client) -> None:
    """However often it was recalled before, and however the conversation has said it."""
    model = ScriptedModel("I see.")
    use(aws.patch, "model", model)
    ada.post("/v1/memories/remember", {"text": "The kiln is fired at dawn."})
    conversation = ada.conversation()
    for _ in range(3):
        ada.say(conversation, "When is the kiln fired?")
    request = model.of("turn")[-1]
    assert request.memory is not None
    lines = [line for line in request.memory.splitlines() if "fired at dawn" in line]
    assert len(lines) == 1
    assert "fired at dawn" not in str(request.messages)
    ada.say(conversation, "Thank you, and good night.")
    assert "kiln" not in (model.of("turn")[-1].memory or "")  # what a turn is not about is not recalled again


def test_case_164_a_turn_that_leans_on_the_turns_before_is_looked_for_with_them(aws: World, ada: Client, model: ScriptedModel) -> None:
    for text in ("Ruth owns the bakery at the harbour.", "Karl repairs clocks in Graz.", *FACTS):
        ada.post("/v1/memories/remember", {"text": text})
    aws.index()
    conversation = ada.conversation()
    for turn in ("I want to talk about the bakery that Ruth owns.", "What is it called?", "And where is it?"):
        ada.say(conversation, turn)
        memory = model.of("turn")[-1].memory or ""
        assert "bakery at the harbour" in memory, turn
        assert "Karl" not in memory, turn
    for turn in ("zzqqxx vbnm", "Thank you, and good night."):  # they stand by themselves
        ada.say(conversation, turn)
        assert "bakery" not in (model.of("turn")[-1].memory or ""), turn


def test_case_164_what_the_user_says_here_word_for_word_is_not_recalled_from_elsewhere(
    aws: World, ada: Client, model: ScriptedModel
) -> None:
    earlier, here = ada.conversation(), ada.conversation()
    words = "The kiln of the old pottery is fired at dawn."
    ada.say(earlier, words)
    aws.learn()
    ada.say(here, "When is the kiln of the old pottery fired?")
    assert "at dawn" in (model.of("turn")[-1].memory or "")
    ada.say(here, f"I know it: {words} When is the kiln of the old pottery fired?")
    assert "at dawn" not in (model.of("turn")[-1].memory or "")
    newest = ada.walk(f"/v1/conversations/{here}/context/frames")[0]
    told = {ada.messages(earlier)[0]["id"], *(one["id"] for one in ada.memories())}
    assert not [item for item in newest["items"] if item["kind"] == "memory" and item["source_id"] in told]
    ada.say(here, "When is the kiln of the old pottery fired?")
    assert "at dawn" not in (model.of("turn")[-1].memory or "")  # it stands in the tail


def test_case_165_a_home_address_is_no_home_directory(aws: World, ada: Client) -> None:
    ada.post("/v1/memories/remember", {"text": "I live at 12 Harbour Street in Bergen."})
    concept(ada, "home directory", "fact", description="The build user's home directory is /home/build.")
    concept(ada, "address bus", "fact", description="The address bus of the board is 16 bits wide.")
    for text in FACTS:
        ada.post("/v1/memories/remember", {"text": text})
    aws.index()
    for query in ("What is my home address?", "home address"):
        found = names(ada, query)
        assert found.index("lives at 12 Harbour Street in Bergen") < 2
        assert "address bus" not in found[:2]
