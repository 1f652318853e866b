"""Which turns are looked for together with the turns before them."""

import pytest
from tidemark.memory.questions import RECENT_CHARACTERS, Said, leans, with_recent

LEANING = (
    "What does she do?", "And in winter?", "Why?", "Where does she live?", "When is her birthday?", "What about Linz?", "Tell me more.",
    "how old is he", "What did the doctor tell her?", "Which one was it?", "What did she say about that?", "Where is that?",
    "How does it taste?", "Do they have children?", "Is she married?", "And the second one?",
    "那她住在哪里？", "冬天呢？", "为什么？", "他喜欢什么？", "那里天气怎么样？", "那个是什么？",
)  # fmt: skip
STANDING = (
    "What is my sister's name?", "Does Ruth like her job?", "My sister lost her keys.", "zzqqxx", "Thank you, and good night.",
    "What time is it?", "Is it raining?", "What is the capital of France?", "I live in Oslo.", "Good morning!", "hello", "???", "0000",
    "What is the code word?", "When is the kiln fired?", "Write a poem about the sea.", "What do I like to drink?", "espresso",
    "Is it possible to fly to Mars?", "Where do I live?", "What is a black hole?", "Remind me what Ruth said about her bakery.",
    "我妹妹住在哪里？", "你好", "法国的首都是哪里？", "我喜欢喝什么？",
)  # fmt: skip
BEFORE: tuple[Said, ...] = (
    ("assistant", "In Linz. Shall I look for its opening hours?"), ("user", "And where is it?"),
    ("assistant", "A bakery."), ("user", "Tell me about my sister's shop."), ("user", "I like pottery."),
)  # fmt: skip


@pytest.mark.parametrize("text", LEANING)
def test_a_turn_that_refers_back_leans(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize("text", STANDING)
def test_a_turn_that_says_what_it_means_stands_by_itself(text: str) -> None:
    assert not leans(text)
    assert with_recent(text, BEFORE) == text


def test_the_turns_before_reach_back_to_the_one_that_stands_by_itself() -> None:
    assert with_recent("And when does it open?", BEFORE).split("\n") == [
        "Tell me about my sister's shop.",
        "And where is it?",
        "And when does it open?",
    ]


@pytest.mark.parametrize("answer", ["Yes, please.", "ok", "好的", "go ahead"])
def test_a_bare_answer_is_looked_for_with_its_question(answer: str) -> None:
    assert with_recent(answer, BEFORE).split("\n")[-2:] == ["Shall I look for its opening hours?", answer]
    assert with_recent(answer, [("assistant", "It is in Linz."), *BEFORE]) == answer
    assert with_recent(answer, BEFORE[1:]) == answer


def test_nothing_before_and_long_turns_are_no_trouble() -> None:
    assert with_recent("Why?", []) == "Why?"
    long = "word " * 10_000
    assert len(with_recent("Why?", [("user", long)])) <= RECENT_CHARACTERS + len("\nWhy?")
