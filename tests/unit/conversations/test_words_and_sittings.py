from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.conversations.sittings import GAP, sitting
from tidemark.conversations.words import EXCERPT_CHARACTERS, excerpt, folded, match

AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "query", "score"),
    [
        ("The build failed on ARM.", "build failed", 1.0),
        ("The BUILD   failed", "build failed", 1.0),
        ("failed was the build", "build failed", 0.9),
        ("the build is green", "build failed", 0.45),
        ("the build is green", "build failed today again", None),
        ("nothing", "build", None),
        ("rebuilding", "build", None),
        ("混合检索方案", "检索", 1.0),
        ("ｂｕｉｌｄ ok", "BUILD", 1.0),
        ("Straße", "straße", 1.0),
        ("price is 3.50 (net)", "3.50 (net)", 1.0),
        ("사과를 먹었다", "사과", 1.0),
        ("anything", "   ", None),
    ],
)
def test_matching(text: str, query: str, score: float | None) -> None:
    found = match(text, query)
    assert (found.score if found else None) == (pytest.approx(score) if score else None)


def test_matched_terms_are_named_once() -> None:
    found = match("alpha gamma", "alpha alpha beta gamma")
    assert found is not None
    assert found.terms == ("alpha", "gamma")


@given(st.text())
def test_folding_keeps_every_place(text: str) -> None:
    assert len(folded(text)) == len(text)


@given(st.text(alphabet="ab ß检", max_size=1200), st.integers(0, 1200))
def test_an_excerpt_is_short_and_of_the_text(text: str, start: int) -> None:
    part = excerpt(text, min(start, len(text)))
    assert len(part) <= EXCERPT_CHARACTERS
    assert part in text


def test_an_excerpt_shows_the_match() -> None:
    text = "x " * 1000 + "needle" + " y" * 1000
    found = match(text, "needle")
    assert found is not None
    assert "needle" in excerpt(text, found.start)


@pytest.mark.parametrize(
    ("current", "gap", "number"),
    [(0, None, 1), (1, timedelta(0), 1), (1, GAP, 1), (1, GAP + timedelta(seconds=1), 2), (4, timedelta(days=3), 5), (0, timedelta(0), 1)],
)
def test_a_rest_of_hours_begins_another_sitting(current: int, gap: timedelta | None, number: int) -> None:
    assert sitting(current, None if gap is None else AT - gap, AT) == number
