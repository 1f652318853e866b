"""Counts are tiktoken's own, never under, and fast on texts made to be slow."""

import time
from functools import cache

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tidemark.models import tokenizer
from tidemark.models.ports import Attachment, ModelMessage, ModelRequest, ToolCall, ToolDefinition

PATHOLOGICAL = ["a", "\n", " ", "😀", "中", "!", "ab", "=-", "\t", "e\u0301", " \n", "9", "\u200d", "你好世界"]


@cache
def reference() -> tiktoken.Encoding:
    """tiktoken's own definition of the encoding over the vendored vocabulary, as its loader would build it."""
    from tiktoken_ext import openai_public  # type: ignore[import-untyped]  # noqa: PLC0415 - private to this test

    ranks = tokenizer.encoding()._mergeable_ranks
    original = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = lambda *_args, **_kwargs: ranks
    try:
        return tiktoken.Encoding(**openai_public.o200k_base())
    finally:
        openai_public.load_tiktoken_bpe = original


@settings(deadline=None)
@given(st.text(max_size=400))
def test_short_texts_count_exactly(text: str) -> None:
    assert tokenizer.count(text) == len(reference().encode(text, disallowed_special=()))


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab é中😀\n .!9'"), min_size=1, max_size=60), st.integers(500, 4000))
def test_long_texts_never_count_under(piece: str, repeats: int) -> None:
    text = piece * repeats
    exact = len(reference().encode(text, disallowed_special=()))
    cuts = len(text) // tokenizer.CHUNK + 1
    assert exact <= tokenizer.count(text) <= exact + cuts * tokenizer.CUT_SLACK


@pytest.mark.parametrize("piece", PATHOLOGICAL)
def test_monotonous_texts_are_counted_quickly(piece: str) -> None:
    text = (piece * 200_000)[:200_000]
    began = time.perf_counter()
    counted = tokenizer.count(text)
    assert time.perf_counter() - began < 1.0
    assert counted >= len(reference().encode(text, disallowed_special=()))


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system", "a<|endofprompt|>b", "\ud83d", "a\x00b"])
def test_odd_texts_are_ordinary(text: str) -> None:
    assert tokenizer.count(text) >= 1


def test_chinese_and_emoji_count_at_least_what_they_are() -> None:
    assert tokenizer.count("你好世界" * 25) >= 50
    assert tokenizer.count("😀" * 40) >= 40


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(0, 80))
def test_a_cut_is_a_beginning_within_its_budget(text: str, budget: int) -> None:
    piece = tokenizer.cut(text, budget)
    assert text.startswith(piece)
    assert tokenizer.count(piece) <= budget
    assert piece == text or tokenizer.count(text) > budget or budget == 0


def test_factors_round_up() -> None:
    assert tokenizer.count("one two three", 1.4) == 5
    assert tokenizer.count("", 1.4) == 0


def test_a_message_counts_all_that_it_carries() -> None:
    bare = ModelMessage(role="user", content="When does it leave?")
    full = ModelMessage(
        role="user",
        content="When does it leave?",
        name="Ingrid",
        attachments=(Attachment(source_id="d", title="Timetable", text="It leaves at 9."),),
    )
    call = ModelMessage(role="assistant", content="", tool_calls=(ToolCall(id="c1", name="lookup", arguments={"order": "A-7"}),))
    assert tokenizer.count_message(bare) == tokenizer.count(bare.content) + tokenizer.MESSAGE_OVERHEAD
    assert tokenizer.count_message(full) > tokenizer.count_message(bare) + tokenizer.count("It leaves at 9.")
    assert tokenizer.count_message(call) > tokenizer.count('{"order": "A-7"}') + tokenizer.MESSAGE_OVERHEAD


def test_tools_and_blocks_are_part_of_a_request() -> None:
    tools = (ToolDefinition(name="lookup", description="Finds an order", parameters={"type": "object"}),)
    bare = ModelRequest(purpose="turn", model_id="m", messages=(ModelMessage(role="user", content="Hi"),), max_tokens=5)
    full = bare.model_copy(update={"tools": tools, "memory": "tea", "summary": "soup", "system": "Be brief."})
    assert tokenizer.count_tools(()) == 0
    assert tokenizer.count_request(full) >= tokenizer.count_request(bare) + tokenizer.count_tools(tools) + 3 * tokenizer.MESSAGE_OVERHEAD
