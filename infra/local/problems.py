"""Answers that the edge makes itself, in the shape of all others."""

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse


def problem(
    status: int, code: str, detail: str, *, errors: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    request_id = str(uuid.uuid4())
    body: dict[str, Any] = {
        "type": f"https://tidemark.dev/problems/{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    if errors is not None:
        body["errors"] = errors
    return JSONResponse(body, status, {"X-Request-Id": request_id, **(headers or {})}, "application/problem+json")
