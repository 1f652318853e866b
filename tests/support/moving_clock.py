"""A clock that tests move. What the service calls now() goes by it; ids go by the machine's own."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any


class _AnyDatetime(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, datetime)


class MovingClock(datetime, metaclass=_AnyDatetime):
    """Stands for `datetime` in tidemark.clock."""

    offset = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz or UTC) + cls.offset

    @classmethod
    def forward(cls, **by: float) -> None:
        cls.offset += timedelta(**by)
