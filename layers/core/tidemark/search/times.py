"""Times as whole microseconds, exact in every engine."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)


def instant(moment: datetime) -> int:
    """Whole microseconds since 1970; a time without zone is UTC."""
    return _microseconds(_aware(moment) - _EPOCH)


def moment(instant: int) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def version(moment: datetime) -> int:
    """Whole microseconds since the year 1: never negative."""
    return _microseconds(_aware(moment) - _FIRST)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _microseconds(elapsed: timedelta) -> int:
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
