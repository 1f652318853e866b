from datetime import UTC, datetime, timedelta, timezone

import pytest
from tidemark.clock import iso, parse


def test_times_are_written_in_utc_with_milliseconds() -> None:
    assert iso(datetime(2026, 11, 30, 1, 2, 3, 4567, tzinfo=timezone(timedelta(hours=2)))) == "2026-11-29T23:02:03.004Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
    ],
)
def test_times_are_read_with_or_without_a_zone(text: str, moment: datetime) -> None:
    assert parse(text) == moment


BEYOND = ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")  # in UTC the year 10000, the year 0


@pytest.mark.parametrize("text", ["", "now", "2026-01-02", "20260102", "2026-13-01T00:00:00Z", "5", *BEYOND])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(text)
