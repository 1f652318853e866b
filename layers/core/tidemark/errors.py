"""Errors of the domain. Which HTTP status each becomes stands in one table, http/problems.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    path: str  # a JSON Pointer into the body, or the name of a parameter
    message: str


class TidemarkError(Exception):
    """Something a caller is told: a stable `code`, a sentence, and `extra` members of the problem body."""

    code = "internal_error"

    def __init__(self, detail: str, *, code: str | None = None, errors: Sequence[FieldError] = (), **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.errors = tuple(errors)
        self.extra = extra


class MalformedError(TidemarkError):
    code = "malformed_json"


class UnauthorizedError(TidemarkError):
    code = "unauthorized"


class ForbiddenError(TidemarkError):
    code = "forbidden"


class NotFoundError(TidemarkError):
    """A missing thing and a foreign one alike; the detail never repeats the id."""

    code = "not_found"

    def __init__(self, detail: str = "There is nothing here for you under this address.", **more: Any) -> None:
        super().__init__(detail, **more)


class ConflictError(TidemarkError):
    code = "conflict"


class PreconditionFailedError(TidemarkError):
    code = "precondition_failed"

    def __init__(self, detail: str = "The resource has changed since the version in If-Match.") -> None:
        super().__init__(detail)


class UnsupportedMediaTypeError(TidemarkError):
    code = "unsupported_media_type"


class InvalidError(TidemarkError):
    """A request that was understood and is not acceptable."""

    code = "validation_failed"

    @classmethod
    def field(cls, path: str, message: str, *, code: str | None = None) -> "InvalidError":
        return cls(message, code=code, errors=[FieldError(path, message)])


class RateLimitedError(TidemarkError):
    code = "rate_limited"


class UpstreamError(TidemarkError):
    """A model or index that we depend on failed."""

    code = "upstream_failed"


class UnavailableError(TidemarkError):
    """Something that we depend on cannot be asked now; the same call may succeed later."""

    code = "unavailable"


class UpstreamTimeoutError(TidemarkError):
    code = "upstream_timeout"
