"""Which status each error of the domain is, and the problem+json body (RFC 9457) of every error."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from tidemark import errors
from tidemark.errors import FieldError, TidemarkError

STATUS: dict[type[TidemarkError], int] = {
    errors.MalformedError: 400,
    errors.UnauthorizedError: 401,
    errors.ForbiddenError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.PreconditionFailedError: 412,
    errors.UnsupportedMediaTypeError: 415,
    errors.InvalidError: 422,
    errors.RateLimitedError: 429,
    errors.UpstreamError: 502,
    errors.UnavailableError: 503,
    errors.UpstreamTimeoutError: 504,
    TidemarkError: 500,
}


def status_of(error: TidemarkError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(error: TidemarkError, request_id: str) -> dict[str, Any]:
    status = status_of(error)
    body: dict[str, Any] = {
        "type": f"https://tidemark.dev/problems/{error.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
    }
    if error.errors:
        body["errors"] = [{"path": one.path, "message": one.message} for one in error.errors]
    return {**body, **{name: value for name, value in error.extra.items() if name != "retry_after"}}


def from_validation(found: Sequence[dict[str, Any]]) -> TidemarkError:
    """What pydantic found, as one error; the values themselves are not repeated."""
    return errors.InvalidError(
        "The request is not valid; `errors` says where.",
        errors=[FieldError(_path(one["loc"]), str(one["msg"]).removeprefix("Value error, ")) for one in found],
    )


def _path(place: Sequence[str | int]) -> str:
    where, *rest = place or ("body",)
    if where != "body":
        return str(rest[0]) if rest else str(where)
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in rest)
