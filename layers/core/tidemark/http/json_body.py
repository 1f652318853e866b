"""Bodies as RFC 8259 has them: strict UTF-8 JSON objects, each name once."""

import json
from typing import Any, NoReturn

from tidemark.errors import InvalidError, MalformedError


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """RFC 8259 leaves open which of two equal names counts: two readers of one body could see two requests."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number beyond what can be stored")
    return value


def loads(text: str) -> Any:
    """The object of a body. Raises MalformedError for what is no JSON, InvalidError for JSON that is no object."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as exc:
        raise MalformedError("The body is not JSON.") from exc
    if not isinstance(value, dict):
        raise InvalidError.field("", "The body has to be a JSON object.")
    return value


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
