"""What is recalled keeps to its budget, whatever the lines, the sessions and the model's tokenizer are."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.conversations.assembly import RecalledBlock, recalled_block, without_said
from tidemark.conversations.blocks import MemoryLine, memory_lines
from tidemark.models import tokenizer
from tidemark.models.ports import ModelMessage

AT = datetime(2024, 5, 2, tzinfo=UTC)
SESSIONS = st.sampled_from([None, *(f"cnv_01M8QH4K9P7ZMDKY3M3PJV7X{number:02}" for number in range(12))])
LINES = st.lists(
    st.builds(
        MemoryLine,
        text=st.text(min_size=1, max_size=80) | st.sampled_from(["likes espresso", "住在上海。", "🦑🦑🦑"]),
        date=st.sampled_from([None, AT]),
        speaker=st.sampled_from([None, "ada"]),
        session=SESSIONS,
    ),
    max_size=40,
)


@given(LINES, st.integers(0, 2_000), st.sampled_from([1.0, 1.3, 2.5]))
def test_a_block_keeps_to_its_budget_and_its_lines_add_up(lines: list[MemoryLine], budget: int, factor: float) -> None:
    made = recalled_block([(str(number), line) for number, line in enumerate(lines)], budget, factor)
    assert made.tokens <= budget
    assert made.tokens == (tokenizer.count(made.block, factor) + tokenizer.MESSAGE_OVERHEAD if made.block else 0)
    assert 0 <= sum(tokens for _, tokens in made.sources) <= made.tokens
    assert [int(source) for source, _ in made.sources] == sorted(int(source) for source, _ in made.sources)


def test_a_session_is_named_once() -> None:
    lines = [(str(number), MemoryLine(f"fact {number}", date=AT, session=session)) for number, session in enumerate(["a", "b", "a", None])]
    block = recalled_block(lines, 1_000, 1.0).block
    assert "- [2024-05-02 | fact | user | session 1] fact 0" in block
    assert "- [2024-05-02 | fact | user | session 1] fact 2" in block
    assert "- [2024-05-02 | fact | user] fact 3" in block
    assert block.splitlines()[-2] == "Sessions: session 1 is a; session 2 is b"
    assert memory_lines(block) == [f"fact {number}" for number in range(4)]


@pytest.mark.parametrize(
    ("role", "content", "kept"),
    [
        ("user", "As I said: I moved to Oslo in May. Why?", False),
        ("assistant", "I moved to Oslo in May.", True),  # not the user's own words
        ("user", "I moved to Bergen in May.", True),
    ],
)
def test_what_the_user_says_in_the_request_is_not_said_twice(role: str, content: str, kept: bool) -> None:
    lines = [
        ("fact", MemoryLine("moved to Oslo", session="a", quotes=("I moved to Oslo in May.",))),
        ("profile", MemoryLine("name is Ada", kind="profile")),
        ("twice", MemoryLine("lives in Oslo", quotes=("I moved to Oslo in May.", "My home is in Oslo."))),
        ("short", MemoryLine("Oslo", quotes=("Oslo",))),
    ]
    recalled = recalled_block(lines, 1_000, 1.0)
    message = ModelMessage.model_validate({"role": role, "content": content})
    left = without_said(recalled, [message], 1.0)
    assert [source for source, _ in left.sources] == [source for source, _ in lines if kept or source != "fact"]
    assert (left == recalled) is kept
    assert without_said(RecalledBlock(), [message], 1.0) == RecalledBlock()
