"""One conversation under any sequence of operations, against a model of a few lines."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tests.support.models import HashEmbedder, ScriptedModel
from tests.support.world import World, use, world

Words = st.text(alphabet="abc é检🙂\n", min_size=1, max_size=12)


class ConversationMachine(RuleBasedStateMachine):
    """The model: parents by message id, contents by message id, the head."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._context = world(Path(self._folder.name))
        self.aws: World = self._context.__enter__()
        use(self.aws.patch, "model", ScriptedModel(default="yes"))
        use(self.aws.patch, "embedder", HashEmbedder())
        self.client = self.aws.key(self.aws.tenant(), "a/da#1")
        self.parents: dict[str, str | None] = {}
        self.contents: dict[str, str] = {}
        self.head: str | None = None

    def teardown(self) -> None:
        self._context.__exit__(None, None, None)
        self._folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.conversation = self.client.conversation()

    def _path(self, rest: str) -> str:
        return f"/v1/conversations/{self.conversation}{rest}"

    def _chain(self, head: str | None) -> list[str]:
        found: list[str] = []
        while head is not None:
            found.append(head)
            head = self.parents[head]
        return found[::-1]

    def _add(self, ids: list[str], contents: list[str], parent: str | None) -> None:
        for id, content in zip(ids, contents, strict=True):
            self.parents[id], self.contents[id] = parent, content
            parent = id
        self.head = ids[-1]

    def _turn(self, words: str, parent: str | None, **body: Any) -> str:
        answer = self.client.say(self.conversation, words, **body)["message"]
        question = answer["parent_id"]
        self._add([question, answer["id"]], [words, "yes"], parent)
        return str(answer["id"])

    @rule(target=known, words=Words)
    def turn(self, words: str) -> str:
        return self._turn(words, self.head)

    @rule(target=known, words=Words, parent=known)
    def fork(self, words: str, parent: str) -> str:
        return self._turn(words, parent, parent_id=parent)

    @rule(target=known, words=Words)
    def new_root(self, words: str) -> str:
        return self._turn(words, None, parent_id=None)

    @rule(target=known, words=st.lists(Words, min_size=1, max_size=60))
    def bring(self, words: list[str]) -> str:
        body = {"messages": [{"role": "user", "content": one} for one in words]}
        ids = self.client.post(self._path("/import"), body)["message_ids"]
        self._add(ids, words, self.head)
        return str(ids[len(ids) // 2])

    @rule(to=known)
    def roll_back(self, to: str) -> None:
        left = self._chain(self.head)
        answer = self.client.post(self._path("/rollback"), {"to_message_id": to})
        assert answer["head_message_id"] == to
        kept = set(self._chain(to))
        assert answer["excluded_message_ids"] == [id for id in left if id not in kept]
        self.head = to

    @rule()
    def refused_import(self) -> None:
        body = {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "x", "created_at": "2999-01-01T00:00:00Z"}]}
        assert self.client.refused("POST", self._path("/import"), body) == (422, "validation_failed")

    @rule(limit=st.integers(1, 7))
    def page_the_branch(self, limit: int) -> None:
        assert [one["id"] for one in self.client.messages(self.conversation, limit=str(limit))] == self._chain(self.head)

    @rule(limit=st.integers(1, 100))
    def page_the_tree(self, limit: int) -> None:
        found = [one["id"] for one in self.client.messages(self.conversation, limit=str(limit), branch="all")]
        assert found == list(self.parents)

    @rule(gone=consumes(known))
    def forget_a_handle(self, gone: str) -> None:
        [item] = self.client.post(self._path("/recall"), {"ids": [gone]})["items"]
        assert (item["id"], item["content"]) == (gone, self.contents[gone])

    @invariant()
    def the_branch_is_the_chain_of_parents(self) -> None:
        if not hasattr(self, "conversation"):
            return
        state = self.client.get(self._path(""))
        assert (state["head_message_id"], state["message_count"]) == (self.head, len(self.parents))
        branch = self.client.messages(self.conversation)
        assert [one["content"] for one in branch] == [self.contents[id] for id in self._chain(self.head)]
        usage = self.client.get(self._path("/context"))
        assert usage["parts"]["tail"] == sum(one["tokens"] for one in branch)


ConversationMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=14, deadline=None)
TestConversation = ConversationMachine.TestCase
