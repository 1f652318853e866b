"""Over random histories, windows and settings: a request is within its budget or refused by the part that does not fit; tool rounds stay
whole; the newest turn is there; nothing stands twice; the order is kept; whatever a summary replaced can be found again."""

import os
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidemark.conversations import budget
from tidemark.conversations.budget import Budget

EXAMPLES = 10_000 if os.environ.get("CI") else 1_000
SUMMARY_FRAME = 90  # tokens of the block around a summary


@dataclass(frozen=True)
class Said:
    id: str
    role: str
    kind: str
    characters: int
    weight: int


@dataclass(frozen=True)
class Settings:
    figures: Budget
    system: int
    tail_max: int
    summary_max: int
    keep_user_chars: int


@dataclass
class Talk:
    """A conversation as the service keeps it: originals, and how far the newest summary reaches."""

    messages: list[Said] = field(default_factory=list)
    replaced: int = 0
    kept: tuple[Said, ...] = ()
    summary: int = 0

    @property
    def tail(self) -> list[Said]:
        return self.messages[self.replaced :]

    def total(self, given: Settings, current: int) -> int:
        framed = self.summary + SUMMARY_FRAME if self.replaced else 0
        return given.system + framed + sum(one.weight for one in (*self.kept, *self.tail)) + current


weights = st.one_of(st.integers(5, 60), st.integers(60, 900), st.integers(900, 6000))


@st.composite
def turns(draw: st.DrawFn) -> list[list[tuple[str, str, int]]]:
    """Turns as lists of (role, kind, tokens): plain ones, and ones with a round of parallel calls; each list is stored at once."""
    made: list[list[tuple[str, str, int]]] = []
    for _ in range(draw(st.integers(1, 14))):
        asked = ("user", "text", draw(weights))
        calls = draw(st.sampled_from((0, 0, 0, 1, 3)))
        if calls:
            made.append([asked, ("assistant", "tool_calls", draw(st.integers(5, 80)))])
            made.append([*(("tool", "tool_result", draw(weights)) for _ in range(calls)), ("assistant", "text", draw(weights))])
        else:
            made.append([asked, ("assistant", "text", draw(weights))])
    return made


@st.composite
def chosen(draw: st.DrawFn) -> Settings:
    window = draw(st.sampled_from((4000, 6000, 8000, 16_000, 32_000)))
    pct = draw(st.sampled_from((None, None, 0.5, 0.75, 0.95)))
    figures = budget.budget(window, draw(st.sampled_from((None, 100, 4000, 64_000))), pct)
    return Settings(
        figures,
        system=draw(st.integers(5, window // 2)),
        tail_max=draw(st.sampled_from((0, 300, 1000, 20_000))),
        summary_max=draw(st.sampled_from((128, 400, 1000, 8000))),
        keep_user_chars=draw(st.sampled_from((0, 500, 80_000))),
    )


@given(history=turns(), given_settings=chosen())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_request_of_a_random_history_keeps_the_rules(history: list[list[tuple[str, str, int]]], given_settings: Settings) -> None:
    talk = Talk()
    for batch in history:
        open_round = bool(talk.messages) and talk.messages[-1].kind == "tool_calls"
        if open_round != (batch[0][0] == "tool"):
            continue  # the turn that opened this round was refused
        stored = [
            Said(f"m{len(talk.messages) + place}", role, kind, 4 * weight, weight) for place, (role, kind, weight) in enumerate(batch)
        ]
        new = stored[:-1] if batch[0][0] == "tool" else stored[:1]
        if send(talk, given_settings, new):
            talk.messages += stored
        assert_found_again(talk)


def send(talk: Talk, given: Settings, new: list[Said]) -> bool:
    """One turn's request; False where it is refused."""
    figures = given.figures
    current = sum(one.weight for one in new)
    if given.system + current > figures.input_budget:
        return False
    if talk.total(given, current) >= figures.trigger_budget:
        compact(talk, given, new)
    over = talk.total(given, current) - figures.input_budget
    if over > 0:
        talk.kept = tuple(budget.newest_that_fit(talk.kept, sum(one.weight for one in talk.kept) - over))
    if talk.total(given, current) > figures.input_budget:
        assert unavoidable(talk, given, current)
        return False
    sent = [*talk.kept, *talk.tail, *new]
    assert sum(one.weight for one in sent) + given.system <= figures.input_budget
    assert sent[-len(new) :] == new
    assert len({one.id for one in sent}) == len(sent)
    order = [int(one.id[1:]) for one in sent]
    assert order == sorted(order)
    assert_whole_rounds(sent)
    return True


def compact(talk: Talk, given: Settings, new: list[Said]) -> None:
    tail, current = talk.tail, sum(one.weight for one in new)
    protect = budget.newest_turn(tail) if new[0].role == "tool" else len(tail)
    cut = budget.cut(
        tail,
        talk.kept,
        protect_from=protect,
        allowance=budget.allowance(given.figures, given.system + current + SUMMARY_FRAME),
        tail_max=given.tail_max,
        summary_max=given.summary_max,
        keep_user_chars=given.keep_user_chars,
        summary_now=talk.summary,
    )
    if cut is None:
        return
    assert cut.tail_start in {*budget.boundaries(tail), len(tail)}
    assert cut.summary_allowance <= given.summary_max
    known = {one.id: one for one in (*talk.kept, *tail[: cut.tail_start])}
    kept = tuple(known[id] for id in cut.kept_ids)
    assert sum(one.weight for one in kept) == cut.kept_tokens
    assert all(one.role == "user" for one in kept)
    assert sum(one.characters for one in kept) <= given.keep_user_chars
    before = talk.total(given, current)
    compacted = Talk(talk.messages, talk.replaced + cut.tail_start, kept, cut.summary_allowance)
    if compacted.total(given, current) < before:
        talk.replaced, talk.kept, talk.summary = compacted.replaced, compacted.kept, compacted.summary


def unavoidable(talk: Talk, given: Settings, current: int) -> bool:
    """Whether what may not be cut away is by itself too much: the round that the new results complete, or a system prompt that leaves
    no room for the shortest summary."""
    tail = talk.tail
    start = budget.newest_turn(tail) if tail and tail[-1].kind == "tool_calls" else len(tail)
    least = sum(one.weight for one in tail[start:]) + given.system + current
    return least + SUMMARY_FRAME + min(64, given.summary_max) > given.figures.input_budget or (start == 0 and bool(tail))


def assert_whole_rounds(sent: list[Said]) -> None:
    for before, one in zip([None, *sent], sent, strict=False):
        if one.role == "tool":
            assert before is not None
            assert before.kind in ("tool_calls", "tool_result")
    for one, after in zip(sent, [*sent[1:], None], strict=True):
        if one.kind == "tool_calls":
            assert after is not None
            assert after.role == "tool"


def assert_found_again(talk: Talk) -> None:
    """Originals stay: the replaced span and the tail are the whole conversation."""
    assert [one.id for one in talk.messages] == [f"m{place}" for place in range(len(talk.messages))]
    assert talk.messages[: talk.replaced] + talk.tail == talk.messages
