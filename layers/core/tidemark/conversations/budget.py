"""How many tokens a request may have, and what of a conversation stays word for word. Whole tokens, divisions rounded down."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

SAFETY_MARGIN = 1000
MAX_OUTPUT_RESERVE = 4000
TRIGGER_RATIO = 0.9  # only reported, as Clouisle does
SHORTEST_SUMMARY = 64  # tokens; less says nothing
KEPT_SHARE_PCT = 70  # of the trigger budget: summary, kept words and tail, so that one compaction buys room for many turns


@dataclass(frozen=True, slots=True)
class Budget:
    """The figures of one model window, in tokens."""

    window: int
    output_reserve: int
    input_budget: int
    trigger_budget: int


def budget(window: int, max_output_tokens: int | None, autocompact_pct: float | None = None) -> Budget:
    """Clouisle's formulas.

    reserve = min(4000, max output, window / 3); input budget = window - reserve - 1000;
    trigger = min(window - max(15% of the window, reserve), input budget), or with CLIO's percentage min(pct x window, input budget).
    """
    third = window // 3
    reserve = min(MAX_OUTPUT_RESERVE, third) if max_output_tokens is None else min(MAX_OUTPUT_RESERVE, max_output_tokens, third)
    input_budget = window - reserve - SAFETY_MARGIN
    if autocompact_pct is None:
        trigger = min(window - max(window * 15 // 100, reserve), input_budget)
    else:
        trigger = min(round(autocompact_pct * 10_000) * window // 10_000, input_budget)
    return Budget(window, reserve, input_budget, trigger)


def pressure_level(tokens: int, budget: Budget) -> str:
    if tokens > budget.input_budget:
        return "critical"
    return "high" if tokens >= budget.trigger_budget else "normal"


def allowance(figures: Budget, fixed: int) -> int:
    """Tokens that summary, kept words and tail may have together after a compaction, beside `fixed` ones that stay as they are."""
    return max(
        0,
        min(
            figures.trigger_budget * KEPT_SHARE_PCT // 100,
            figures.trigger_budget - 1 - fixed,
            figures.input_budget - fixed,
        ),
    )


class Weighed(Protocol):
    """What the cut of a history looks at."""

    @property
    def id(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def characters(self) -> int: ...
    @property
    def weight(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a compaction cuts: messages[:tail_start] are replaced, of which `kept` stay word for word beside the summary."""

    tail_start: int
    kept_ids: tuple[str, ...]
    kept_tokens: int
    tail_tokens: int
    summary_allowance: int


def boundaries(messages: Sequence[Weighed]) -> list[int]:
    """Indices at which the history may be cut: never inside a tool round, so that calls and their results stay together."""
    return [
        index
        for index, message in enumerate(messages)
        if message.role != "tool" and (index == 0 or messages[index - 1].kind != "tool_calls")
    ]


def newest_turn(messages: Sequence[Weighed]) -> int:
    """The index of the newest user message, where the newest turn begins; len(messages) when there is none."""
    return next((index for index in range(len(messages) - 1, -1, -1) if messages[index].role == "user"), len(messages))


def cut(
    messages: Sequence[Weighed],
    carried: Sequence[Weighed],
    *,
    protect_from: int,
    allowance: int,
    tail_max: int,
    summary_max: int,
    keep_user_chars: int,
    summary_now: int = 0,
) -> Cut | None:
    """Chooses tail and kept words of `messages` (oldest first, all that no summary replaced yet), or None when nothing would be replaced.

    `carried` are the user's words that the last compaction kept. `protect_from` is where the newest turn begins: it always stays.
    `allowance` bounds summary, kept words and tail together. The tail is the longest suffix that starts at a boundary and fits; then the
    user's own messages stay, newest first, within characters and tokens: one too long is passed over, older ones that fit are kept.
    `summary_now` are the tokens of the present summary: where it and the whole tail no longer fit together, the oldest messages go too, so
    that all of it is folded into a smaller one.
    """
    places = boundaries(messages)
    weights = [message.weight for message in messages]
    shortest = min(summary_max, SHORTEST_SUMMARY)
    summary = max(min(summary_max, allowance // 2), shortest)
    room = min(tail_max, allowance - summary)
    start, tail = len(messages), 0
    suffix = 0
    for index in range(len(messages) - 1, -1, -1):
        suffix += weights[index]
        if index not in places:
            continue
        if index >= protect_from or suffix <= room:
            start, tail = index, suffix
    if start > protect_from:  # the newest turn begins inside a round: keep from the boundary before it
        start = max((place for place in places if place <= protect_from), default=0)
        tail = sum(weights[start:])
    if start == 0 and summary_now + sum(message.weight for message in carried) + tail > allowance:
        later = [place for place in (*places, len(messages)) if 0 < place <= protect_from]
        start = min(later, default=0)
        tail = sum(weights[start:])
    if start == 0:
        return None
    summary = max(min(summary, allowance - tail), shortest)
    kept, kept_tokens = _kept_words([*carried, *messages[:start]], allowance - tail - summary, keep_user_chars)
    return Cut(start, kept, kept_tokens, tail, summary)


W = TypeVar("W", bound=Weighed)


def newest_that_fit(kept: Sequence[W], tokens: int) -> list[W]:
    """Of the words that a compaction kept, those for which a request has room: newest first, each that fits, in their order."""
    chosen: list[W] = []
    for message in reversed(kept):
        if message.weight <= tokens:
            chosen.append(message)
            tokens -= message.weight
    return chosen[::-1]


def _kept_words(candidates: Sequence[Weighed], tokens: int, characters: int) -> tuple[tuple[str, ...], int]:
    kept: list[str] = []
    used = 0
    for message in reversed(candidates):
        if message.role != "user" or message.kind != "text":
            continue
        if message.characters <= characters and message.weight <= tokens - used:
            kept.append(message.id)
            characters -= message.characters
            used += message.weight
    return tuple(reversed(kept)), used
