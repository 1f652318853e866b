"""Phrases become days of the speaker's own calendar; numbers and short words do not."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidemark.memory.dates import resolve, time_filter

AT = datetime(2024, 3, 13, 23, 30, tzinfo=timezone(timedelta(hours=9)))  # a Wednesday in Tokyo, 14:30 in London

PHRASES = [
    ("yesterday", "2024-03-12", "2024-03-13"),
    ("the day before yesterday", "2024-03-11", "2024-03-12"),
    ("last week", "2024-03-04", "2024-03-11"),
    ("last weekend", "2024-03-09", "2024-03-11"),
    ("last month", "2024-02-01", "2024-03-01"),
    ("last year", "2023-01-01", "2024-01-01"),
    ("three days ago", "2024-03-10", "2024-03-11"),
    ("2 weeks ago", "2024-02-26", "2024-03-04"),
    ("five months ago", "2023-10-01", "2023-11-01"),
    ("a year ago", "2023-01-01", "2024-01-01"),
    ("last Friday", "2024-03-08", "2024-03-09"),
    ("next Tuesday", "2024-03-19", "2024-03-20"),
    ("on 8 May 2023", "2023-05-08", "2023-05-09"),
    ("on May 8th, 2023", "2023-05-08", "2023-05-09"),
    ("2023-05-08", "2023-05-08", "2023-05-09"),
    ("we met on 8 May", "2023-05-08", "2023-05-09"),
    ("we will meet on 8 May", "2024-05-08", "2024-05-09"),
    ("I moved in May", "2023-05-01", "2023-06-01"),
    ("I will move in May", "2024-05-01", "2024-06-01"),
    ("back in 2019", "2019-01-01", "2020-01-01"),
    ("I leave in two weeks", "2024-03-25", "2024-04-01"),
    ("last summer", "2023-06-01", "2023-09-01"),
    ("next month", "2024-04-01", "2024-05-01"),
    ("29 February 2024", "2024-02-29", "2024-03-01"),
    ("昨天", "2024-03-12", "2024-03-13"),
    ("前天", "2024-03-11", "2024-03-12"),
    ("上周", "2024-03-04", "2024-03-11"),
    ("上周五", "2024-03-08", "2024-03-09"),
    ("下周三", "2024-03-20", "2024-03-21"),
    ("上个月", "2024-02-01", "2024-03-01"),
    ("去年五月", "2023-05-01", "2023-06-01"),
    ("三天前", "2024-03-10", "2024-03-11"),
    ("两个月前", "2024-01-01", "2024-02-01"),
    ("2023年5月8日", "2023-05-08", "2023-05-09"),
    ("明年", "2025-01-01", "2026-01-01"),
]
NO_DATES = [
    "what runs on port 9077", "what did we do", "may I ask", "March on", "I may go", "room 2021", "sat down", "every Friday I"
        " swim", "the second one",
    "version 2.10.3", "call 2024", "我有两个月大的猫", "第三章", "in a moment", "will may",
]  # fmt: skip


@pytest.mark.parametrize(("text", "first", "before"), PHRASES)
def test_a_phrase_is_resolved_against_its_own_moment(text: str, first: str, before: str) -> None:
    [span] = resolve(text, AT)
    assert (span.start.date(), span.end.date()) == (date.fromisoformat(first), date.fromisoformat(before))
    assert span.start.tzinfo is AT.tzinfo
    assert span.phrase in text


@pytest.mark.parametrize("text", NO_DATES)
def test_numbers_and_short_words_are_no_dates(text: str) -> None:
    assert resolve(text, AT) == []


def test_the_zone_decides_what_yesterday_was() -> None:
    [tokyo], [london] = resolve("yesterday", AT), resolve("yesterday", AT.astimezone(UTC) + timedelta(hours=0))
    assert tokyo.start != london.start
    [late] = resolve("yesterday", datetime(2024, 3, 14, 0, 30, tzinfo=AT.tzinfo))
    assert late.start.date() == date(2024, 3, 13)


@settings(deadline=None)
@given(
    st.text(alphabet="0123456789 年月日前天in on last may of-/", max_size=30),
    st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9998, 12, 31)),
)
def test_no_text_and_no_moment_fails(text: str, at: datetime) -> None:
    for span in resolve(text, at.replace(tzinfo=UTC)):
        assert span.start < span.end
        assert text[span.begin : span.stop].strip() == span.phrase


SITTINGS = [(datetime(2024, 1, day, 9, tzinfo=UTC), datetime(2024, 1, day, 10, tzinfo=UTC)) for day in (3, 10, 17)]


def days(query: str) -> tuple[str | None, str | None] | None:
    found = time_filter(query, AT, SITTINGS)
    if found is None:
        return None
    first, before = (end.date().isoformat() if end else None for end in (found.start, found.end))
    return first, before


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("what did we discuss on 8 May", ("2023-05-08", "2023-05-09")),
        ("what happened last week?", ("2024-03-04", "2024-03-11")),
        ("what did I plan five months ago", ("2023-10-01", "2023-11-01")),
        ("between March and June", ("2023-03-01", "2023-07-01")),
        ("what did we say from 2 May to 5 May", ("2023-05-02", "2023-05-06")),
        ("since January", ("2024-01-01", None)),
        ("before 8 May 2023", (None, "2023-05-08")),
        ("after 8 May 2023", ("2023-05-09", None)),
        ("in our third session", ("2024-01-17", "2024-01-17")),
        ("in our last conversation", ("2024-01-17", "2024-01-17")),
        ("第二次对话里说了什么", ("2024-01-10", "2024-01-10")),
        ("上周我们聊了什么", ("2024-03-04", "2024-03-11")),
        ("what did I eat yesterday", ("2024-03-12", "2024-03-13")),
    ],
)
def test_a_query_about_a_time_gives_its_span(query: str, wanted: tuple[str | None, str | None]) -> None:
    assert days(query) == wanted


@pytest.mark.parametrize(
    "query", [*NO_DATES[:8], "what should I cook today", "in our ninth session", "今天天气怎么样", "my second car", ""]
)
def test_other_queries_give_no_span(query: str) -> None:
    assert days(query) is None


def test_a_session_is_told_apart_where_none_is_known() -> None:
    found = time_filter("in our third session", AT)
    assert found is not None
    assert (found.session, found.start, found.end) == (3, None, None)
