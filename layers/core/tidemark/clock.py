"""Times: aware, UTC, and written as RFC 3339 with milliseconds."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer


def now() -> datetime:
    """The present, cut to the milliseconds that are stored and answered."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """An RFC 3339 time; one without a zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if "T" not in text.upper() and " " not in text:
        raise ValueError("a date is no time")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        moment.astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("a time whose UTC has no year from 1 to 9999") from exc
    return moment


def _from_json(value: object) -> object:
    if not isinstance(value, str):
        if isinstance(value, datetime):
            return value
        raise ValueError("a time is written as RFC 3339 text")
    try:
        return parse(value)
    except ValueError as exc:
        raise ValueError("not a time in RFC 3339") from exc


Time = Annotated[datetime, BeforeValidator(_from_json), PlainSerializer(iso, return_type=str, when_used="json")]
