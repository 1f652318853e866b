import inspect

import pytest
from tidemark import errors
from tidemark.errors import FieldError, InvalidError, NotFoundError, RateLimitedError, TidemarkError
from tidemark.http.problems import STATUS, from_validation, problem, status_of

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, TidemarkError)]


def test_every_kind_of_error_has_its_status() -> None:
    assert set(KINDS) == set(STATUS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_has_what_a_client_needs(kind: type[TidemarkError]) -> None:
    body = problem(kind("What went wrong."), "request-1")
    assert {"type", "title", "status", "detail", "code", "request_id"} == set(body)
    assert body["status"] == STATUS[kind]
    assert body["type"].endswith(body["code"])


def test_an_own_kind_has_the_status_of_its_nearest_parent() -> None:
    class OwnError(InvalidError):
        code = "own"

    assert status_of(OwnError("x")) == 422
    assert problem(OwnError("x"), "r")["code"] == "own"


def test_extra_members_stand_at_the_top_and_retry_after_is_a_header_only() -> None:
    body = problem(RateLimitedError("slow down", retry_after=3, part="tail"), "r")
    assert body["part"] == "tail"
    assert "retry_after" not in body


def test_a_missing_thing_s_problem_repeats_no_id() -> None:
    assert problem(NotFoundError(), "r")["detail"] == problem(NotFoundError(), "r2")["detail"]


def test_validation_errors_point_into_the_body_and_repeat_no_value() -> None:
    error = from_validation(
        [
            {"loc": ("body", "messages", 3, "a/b~c"), "msg": "Value error, wrong", "input": "secret words"},
            {"loc": ("query", "limit"), "msg": "too large", "input": "999"},
        ]
    )
    assert error.errors == (FieldError("/messages/3/a~1b~0c", "wrong"), FieldError("limit", "too large"))
    assert "secret words" not in str(problem(error, "r"))
