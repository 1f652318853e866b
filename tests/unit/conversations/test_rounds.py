from datetime import UTC, datetime

import pytest
from tidemark.conversations.model import Draft
from tidemark.conversations.requests import TurnBody
from tidemark.conversations.turns import TITLE_LENGTH, check_round, title_of
from tidemark.errors import ConflictError, InvalidError


def body(*results: str, content: str | None = None) -> TurnBody:
    given = {"content": content} if content is not None else {}
    return TurnBody.model_validate({"tool_results": [{"tool_call_id": one, "content": "done"} for one in results], **given})


@pytest.mark.parametrize(
    ("calls", "turn"),
    [([], body(content="hello")), (["a"], body("a")), (["a", "b"], body("b", "a")), (["a"], body("a", content="and more"))],
)
def test_a_round_is_answered_whole(calls: list[str], turn: TurnBody) -> None:
    check_round(calls, turn)


@pytest.mark.parametrize(
    ("calls", "results", "named"),
    [(["a", "b"], ["a"], "missing: b"), (["a"], ["a", "x"], "unknown: x"), ([], ["x"], "unknown: x"), (["a"], ["a", "a"], "twice")],
)
def test_other_results_are_refused_by_name(calls: list[str], results: list[str], named: str) -> None:
    with pytest.raises(InvalidError, match=named):
        check_round(calls, body(*results))


def test_other_words_wait_for_the_results() -> None:
    with pytest.raises(ConflictError) as caught:
        check_round(["a"], body(content="something else"))
    assert caught.value.code == "tool_results_pending"


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("hello", "hello"),
        ("  two\n\nlines ", "two lines"),
        ("x" * TITLE_LENGTH, "x" * TITLE_LENGTH),
        ("x" * 81, "x" * 79 + "…"),
        ("\n ", None),
    ],
)
def test_a_title_is_the_first_words_on_one_line(content: str, title: str | None) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    drafts = [
        Draft(role="assistant", content="before", tokens=1, created_at=at),
        Draft(role="user", content=content, tokens=1, created_at=at),
    ]
    assert title_of(drafts) == title
    assert title_of(drafts[:1]) is None
