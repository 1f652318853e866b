"""Two tenants, three subjects and a restricted knowledge base each, written in any order by one warm process; whoever reads, on whatever
path, sees the words of its own places and of no other.

Each place has a word of its own. A reader is a caller with the places that are its to see; what it gets may hold only their words.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.models import HashEmbedder
from tests.support.world import Answer, Client, World, use, world

SUBJECTS = ("ada", "a/da#1&..", "ада🙂")  # the last one works in the knowledge base
WORD = re.compile(r"zorp[a-z]{4}")
QUERY = "Where does the friend live, and what is the code word?"


@dataclass
class Place:
    """Where something is said or remembered: a subject's, or a restricted knowledge base's."""

    word: str
    writer: Client
    conversations: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


@dataclass
class Home:
    """One tenant."""

    admin: Client
    base: str
    subjects: dict[str, Place]
    kb: Place

    @property
    def places(self) -> list[Place]:
        return [*self.subjects.values(), self.kb]


@dataclass(frozen=True)
class Reader:
    client: Client
    memory: frozenset[str]  # the words that its memory may tell
    said: frozenset[str]  # the words that its conversations may tell


def made(number: int) -> str:
    return "zorp" + "".join("abcdefghij"[int(digit)] for digit in f"{number * 1237 % 10_000:04d}")


class IsolationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._context = world(Path(self._folder.name))
        self.aws: World = self._context.__enter__()
        use(self.aws.patch, "embedder", HashEmbedder())
        self.homes: list[Home] = []

    def teardown(self) -> None:
        self._context.__exit__(None, None, None)
        self._folder.cleanup()

    @initialize()
    def settle(self) -> None:
        for tenant_number in range(2):
            tenant = self.aws.tenant()
            admin = self.aws.user(tenant)
            base = admin.post("/v1/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
            words = [made(10 * tenant_number + place) for place in range(1, 5)]
            subjects = {name: Place(word, self.aws.key(tenant, name)) for name, word in zip(SUBJECTS, words, strict=False)}
            kb = Place(words[-1], self.aws.key(tenant, SUBJECTS[-1], knowledge_base_id=base))
            self.homes.append(Home(admin, base, subjects, kb))
        for home in self.homes:
            for place in home.places:
                self._speak(home, place)
                self._enter(place)
        self.aws.index()

    # writing
    def _speak(self, home: Home, place: Place) -> None:
        within = {"knowledge_base_id": home.base} if place is home.kb else {}
        conversation = place.writer.conversation(title=f"about {place.word}", **within)
        place.conversations.append(conversation)
        place.writer.say(conversation, f"Remember this: my friend {place.word} lives in Bergen and the code word is {place.word}.")
        place.writer.say(conversation, f"I told you about {place.word}.")
        place.messages += [one["id"] for one in place.writer.messages(conversation)]

    def _enter(self, place: Place) -> None:
        ids = [
            place.writer.post("/v1/memories/entities", {"name": f"{kind} {place.word}", "entity_type": "concept"})["id"] for kind in "ab"
        ]
        place.entities += ids
        ends = {"source_entity_id": ids[0], "target_entity_id": ids[1], "relation_type": "knows", "description": place.word}
        place.writer.post("/v1/memories/relations", ends)

    @rule(tenant=st.integers(0, 1), place=st.integers(0, 3))
    def speak(self, tenant: int, place: int) -> None:
        self._speak(self.homes[tenant], self.homes[tenant].places[place])

    @rule(tenant=st.integers(0, 1), place=st.integers(0, 3))
    def enter(self, tenant: int, place: int) -> None:
        self._enter(self.homes[tenant].places[place])

    @rule(tenant=st.integers(0, 1), place=st.integers(0, 3))
    def forget(self, tenant: int, place: int) -> None:
        chosen = self.homes[tenant].places[place]
        if chosen.entities:
            chosen.writer.delete(f"/v1/memories/entities/{chosen.entities.pop()}")

    @rule()
    def index(self) -> None:
        self.aws.index()

    # reading
    def readers(self, home: Home) -> Iterator[Reader]:
        tenant = home.admin.caller.tenant_id
        everyone = frozenset(place.word for place in home.subjects.values())
        for name, place in home.subjects.items():
            # what was said in the base's conversations was said by this one subject
            said = frozenset({place.word, *([home.kb.word] if name == SUBJECTS[-1] else [])})
            yield Reader(self.aws.key(tenant, name), frozenset({place.word}), said)
            yield Reader(self.aws.key(tenant, name, knowledge_base_id=home.base), frozenset({home.kb.word}), said)
            yield Reader(self.aws.user(tenant, "member", external_subject_id=name), frozenset({place.word}), said)
        yield Reader(self.aws.key(tenant), frozenset(), frozenset())
        yield Reader(home.admin, everyone, everyone | {home.kb.word})

    def check(self, answer: Answer, allowed: frozenset[str], told: str) -> None:
        found = set(WORD.findall(json.dumps(answer.body, ensure_ascii=False)))
        assert answer.status < 500, (told, answer)
        assert found <= allowed, (told, found - allowed, answer)

    @rule(tenant=st.integers(0, 1), number=st.integers(0, 10))
    def read_memory(self, tenant: int, number: int) -> None:
        reader = list(self.readers(self.homes[tenant]))[number]
        every = [word for home in self.homes for word in (place.word for place in home.places)]
        # what is asked for names every place's word, so nothing that is answered may repeat the question
        body = {"query": QUERY, "top_k": 50, "sources": ["memories", "messages"], "max_depth": 3}
        found = reader.client.send("POST", "/v1/memories/search", body)
        self.check(found, reader.memory | reader.said, "search")
        self.check(Answer(found.status, found.body["items"], {}), reader.memory, "search items")
        for word in every:
            exact = reader.client.send("POST", "/v1/memories/search", body | {"query": word, "min_score": 0})
            self.check(exact, reader.memory | reader.said, f"search {word}")
        lists: tuple[tuple[str, dict[str, Any]], ...] = (
            ("/v1/memories/entities", {"page_size": "100"}),
            ("/v1/memories/entities", {"q": "zorp", "page_size": "100"}),
            ("/v1/memories/relations", {"limit": "100"}),
            ("/v1/memories/graph", {"max_depth": "3", "max_nodes": "100"}),
        )
        for path, query in lists:
            self.check(reader.client.send("GET", path, **query), reader.memory, path)
        self.check(reader.client.tool("search_memory", query=QUERY, top_k=50), reader.memory, "search_memory")

    @rule(tenant=st.integers(0, 1), number=st.integers(0, 10))
    def read_conversations(self, tenant: int, number: int) -> None:
        home = self.homes[tenant]
        reader = list(self.readers(home))[number]
        for path in ("/v1/conversations", "/v1/extractions"):
            self.check(reader.client.send("GET", path, limit="100"), reader.said, path)
        for conversation in [one["id"] for one in reader.client.walk("/v1/conversations")][:2]:
            base = f"/v1/conversations/{conversation}"
            intent = {"conversation_id": conversation, "scope": "global", "user_intent": "what was said"}
            for path, query in (
                (base, {}),
                (f"{base}/messages", {"branch": "all", "limit": "100"}),
                (f"{base}/summary", {}),
                (f"{base}/context", {}),
                (f"{base}/context/frames", {}),
                (f"{base}/compactions", {}),
                ("/v1/search/sessions", {"q": "code word friend", **intent}),
            ):
                self.check(reader.client.send("GET", path, **query), reader.said, path)
            for body in (
                {"query": "code word"},
                {"ids": [id for home in self.homes for place in home.places for id in place.messages][:50]},
            ):
                self.check(reader.client.send("POST", f"{base}/recall", body), reader.said, "recall")
            for tool, arguments in (
                ("session_search", {"query": "code word friend", **intent}),
                ("session_read_summary", {"conversation_id": conversation}),
                ("session_read_context_frame", {"conversation_id": conversation}),
                ("recall_context", {"conversation_id": conversation, "query": "code word"}),
            ):
                self.check(reader.client.tool(tool, **arguments), reader.said, tool)

    @rule(tenant=st.integers(0, 1), name=st.sampled_from(SUBJECTS))
    def ask(self, tenant: int, name: str) -> None:
        """A turn in a new conversation tells what is recalled."""
        home = self.homes[tenant]
        client = self.aws.key(home.admin.caller.tenant_id, name)
        conversation = client.conversation()
        answer = client.send("POST", f"/v1/conversations/{conversation}/messages", {"content": QUERY})
        allowed = {home.subjects[name].word, *([home.kb.word] if name == SUBJECTS[-1] else [])}
        self.check(answer, frozenset(allowed), "turn")
        body = {"messages": [{"role": "user", "content": QUERY}]}
        self.check(client.send("POST", "/v1/chat/completions", body), frozenset(allowed), "completion")

    @rule(tenant=st.integers(0, 1), name=st.sampled_from(SUBJECTS))
    def administer(self, tenant: int, name: str) -> None:
        home = self.homes[tenant]
        mine, kb = home.subjects[name].word, home.kb.word
        owned = {mine, *([kb] if name == SUBJECTS[-1] else [])}
        everyone = frozenset(place.word for place in home.subjects.values())
        export = home.admin.send("GET", f"/v1/subjects/{quote(name, safe='').replace('.', '%2E')}/export")
        self.check(export, frozenset(owned), "export")
        assert mine in str(export.body)
        tenant_id = home.admin.caller.tenant_id
        for path, allowed in (
            (f"/v1/tenants/{tenant_id}/memories", everyone),
            (f"/v1/tenants/{tenant_id}/memories/graph", everyone),
            (f"/v1/knowledge-bases/{home.base}/memories", frozenset({kb})),
            (f"/v1/knowledge-bases/{home.base}/memories/graph", frozenset({kb})),
            ("/v1/audit", frozenset()),
            ("/v1/usage", frozenset()),
        ):
            query: dict[str, Any] = {} if path.endswith(("graph", "usage")) else {"limit": "100"}
            answer = home.admin.send("GET", path, **query)
            assert answer.status == 200
            self.check(answer, allowed, path)

    @rule(tenant=st.integers(0, 1), name=st.sampled_from(SUBJECTS), place=st.integers(0, 3), other=st.booleans())
    def reach_for_a_foreign_id(self, tenant: int, name: str, place: int, *, other: bool) -> None:
        home = self.homes[tenant]
        target = (self.homes[1 - tenant] if other else home).places[place]
        mine = home.subjects[name]
        if target is mine or (target is home.kb and name == SUBJECTS[-1]):
            return
        client = mine.writer
        conversation = f"/v1/conversations/{target.conversations[0]}"
        tries: list[tuple[str, str, Any]] = [
            ("GET", path, None) for path in (conversation, f"{conversation}/messages", f"{conversation}/summary")
        ]
        tries += [("POST", f"{conversation}/recall", {"query": "code"}), ("POST", f"{conversation}/messages", {"content": "hi"})]
        tries += [("GET", f"/v1/memories/entities/{id}{rest}", None) for id in target.entities[:1] for rest in ("", "/history")]
        for method, path, body in tries:
            answer = client.send(method, path, body)
            assert (answer.status, answer.code) == (404, "not_found"), (path, answer)
            self.check(answer, frozenset(), path)
        if target.entities:
            answer = client.send("GET", "/v1/memories/graph", entity_ids=target.entities[0])
            assert answer.status == 404
            told: Any = client.tool("get_memory_subgraph", entities=[target.entities[0]]).body
            assert told["result"]["isError"]


# A step is a dozen requests: a failure is told as it was found, not made smaller for an hour.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
IsolationMachine.TestCase.settings = settings(max_examples=3, stateful_step_count=14, deadline=None, phases=PHASES)
TestIsolation = IsolationMachine.TestCase
