"""Token budgets, and where a history is cut."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.conversations.budget import Budget, Cut, boundaries, budget, cut, newest_turn, pressure_level


@dataclass(frozen=True)
class Said:
    id: str
    role: str
    kind: str
    characters: int
    weight: int


@pytest.mark.parametrize(
    ("window", "output", "pct", "expected"),
    [
        (32_000, None, None, Budget(32_000, 4000, 27_000, 27_000)),
        (32_000, 2000, None, Budget(32_000, 2000, 29_000, 27_200)),
        (8_000, None, None, Budget(8_000, 2666, 4_334, 4_334)),
        (4_000, None, None, Budget(4_000, 1333, 1_667, 1_667)),
        (128_000, 16_384, None, Budget(128_000, 4000, 123_000, 108_800)),
        (128_000, None, 0.85, Budget(128_000, 4000, 123_000, 108_800)),
        (128_000, None, 0.5, Budget(128_000, 4000, 123_000, 64_000)),
        (32_000, None, 0.95, Budget(32_000, 4000, 27_000, 27_000)),
        (10_001, None, 0.57, Budget(10_001, 3333, 5668, 5668)),
    ],
)
def test_budgets_follow_the_formulas(window: int, output: int | None, pct: float | None, expected: Budget) -> None:
    assert budget(window, output, pct) == expected


@given(st.integers(4000, 2_000_000), st.none() | st.integers(1, 100_000), st.none() | st.floats(0.5, 0.95))
def test_the_trigger_never_lies_behind_the_input_budget(window: int, output: int | None, pct: float | None) -> None:
    figures = budget(window, output, pct)
    assert 0 < figures.trigger_budget <= figures.input_budget < window
    assert figures.input_budget + figures.output_reserve + 1000 == window


@pytest.mark.parametrize(("tokens", "level"), [(0, "normal"), (26_999, "normal"), (27_000, "high"), (27_001, "critical")])
def test_pressure(tokens: int, level: str) -> None:
    assert pressure_level(tokens, budget(32_000, None)) == level


# random histories: turns of a user's message, tool rounds, an answer
@st.composite
def histories(draw: st.DrawFn) -> list[Said]:
    found: list[Said] = []

    def say(role: str, kind: str = "text") -> None:
        size = draw(st.integers(1, 400))
        found.append(Said(f"m{len(found)}", role, kind, 4 * size, size))

    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            say("user")
        for _ in range(draw(st.integers(0, 2))):
            say("assistant", "tool_calls")
            for _ in range(draw(st.integers(1, 3))):
                say("tool", "tool_result")
        say("assistant")
    return found


Sizes = st.integers(0, 3000)


def cut_of(history: list[Said], allowance: int, tail: int, summary: int, characters: int) -> Cut | None:
    return cut(
        history,
        [],
        protect_from=newest_turn(history),
        allowance=allowance,
        tail_max=tail,
        summary_max=summary,
        keep_user_chars=characters,
    )


@given(histories(), Sizes, Sizes, st.integers(128, 2000), Sizes)
def test_a_cut_never_splits_a_tool_round(history: list[Said], allowance: int, tail: int, summary: int, characters: int) -> None:
    found = cut_of(history, allowance, tail, summary, characters)
    if found is not None and found.tail_start < len(history):
        assert history[found.tail_start].role != "tool"
        assert found.tail_start in boundaries(history)


@given(histories(), Sizes, Sizes, st.integers(128, 2000), Sizes)
def test_the_newest_turn_always_stays(history: list[Said], allowance: int, tail: int, summary: int, characters: int) -> None:
    found = cut_of(history, allowance, tail, summary, characters)
    if found is not None:
        assert found.tail_start <= newest_turn(history)


@given(histories(), Sizes, Sizes, st.integers(128, 2000), Sizes)
def test_what_stays_is_within_the_allowance_wherever_the_newest_turn_leaves_room(
    history: list[Said], allowance: int, tail: int, summary: int, characters: int
) -> None:
    found = cut_of(history, allowance, tail, summary, characters)
    if found is None:
        return
    assert found.tail_tokens == sum(message.weight for message in history[found.tail_start :])
    protected = sum(message.weight for message in history[newest_turn(history) :])
    if protected <= min(tail, allowance - min(summary, allowance // 2)):
        assert found.tail_tokens <= tail
        assert found.tail_tokens + found.kept_tokens <= allowance
        assert found.tail_tokens + found.kept_tokens + found.summary_allowance <= max(allowance, found.tail_tokens + 64)


@given(histories(), Sizes, Sizes, st.integers(128, 2000), Sizes)
def test_kept_words_are_the_users_own_newest_first_as_many_as_fit(
    history: list[Said], allowance: int, tail: int, summary: int, characters: int
) -> None:
    found = cut_of(history, allowance, tail, summary, characters)
    if found is None:
        return
    replaced = history[: found.tail_start]
    kept = [message for message in replaced if message.id in found.kept_ids]
    assert [message.id for message in kept] == list(found.kept_ids)
    assert {message.role for message in kept} <= {"user"}
    assert sum(message.characters for message in kept) <= characters
    room_tokens, room_characters = max(0, allowance - found.tail_tokens - found.summary_allowance), characters
    for message in reversed([message for message in replaced if message.role == "user"]):
        fits = message.weight <= room_tokens and message.characters <= room_characters
        assert (message.id in found.kept_ids) == fits
        room_tokens -= message.weight * fits
        room_characters -= message.characters * fits


@given(histories())
def test_with_room_for_everything_nothing_is_replaced(history: list[Said]) -> None:
    assert cut_of(history, 1_000_000, 500_000, 1000, 0) is None


def said(*roles: str, weight: int = 100) -> list[Said]:
    kinds = {"calls": ("assistant", "tool_calls"), "tool": ("tool", "tool_result")}
    return [Said(f"m{place}", *kinds.get(role, (role, "text")), 400, weight) for place, role in enumerate(roles)]


def test_ten_parallel_results_stay_with_their_calls() -> None:
    history = said("user", "assistant", "user", "calls", *["tool"] * 10, "assistant")
    for room in range(100, 1500, 100):
        found = cut_of(history, room + 200, room, 200, 0)
        assert found is not None
        assert found.tail_start in (2, 1)  # the newest turn is its user's message and all of the round


def test_one_message_too_long_is_passed_over_and_older_ones_are_kept() -> None:
    history = [*said("user", "assistant"), Said("long", "user", "text", 50_000, 100), *said("assistant", "user")]
    found = cut(history, [], protect_from=4, allowance=700, tail_max=100, summary_max=200, keep_user_chars=1000)
    assert found is not None
    assert found.kept_ids == ("m0",)


def test_words_that_an_earlier_compaction_kept_are_candidates_again() -> None:
    carried, history = [Said("old", "user", "text", 400, 100)], said("user", "assistant", "user")
    found = cut(history, carried, protect_from=2, allowance=700, tail_max=100, summary_max=200, keep_user_chars=800)
    assert found is not None
    assert found.kept_ids == ("old", "m0")


def test_boundaries_are_everywhere_but_inside_rounds() -> None:
    assert boundaries(said("user", "calls", "tool", "tool", "assistant", "user")) == [0, 1, 4, 5]
    assert all(left < right for left, right in pairwise(boundaries(said("user", "assistant", "user"))))
