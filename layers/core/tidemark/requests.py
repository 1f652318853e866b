"""What the bodies of requests have in common: strict types, no unknown fields, and the texts that ids and names may be."""

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


class Body(BaseModel):
    """A request body: JSON types are exact, unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def one_line(text: str) -> str:
    """Refuses control characters and line separators. Raises ValueError."""
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise ValueError("control characters are not allowed here")
    return text


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is expected")
    return value


def merged(stored: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A partial change, nested too: what the patch does not name stays, null takes a value back to what is inherited."""
    result = dict(stored)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result.get(name) or {}, value)
        else:
            result[name] = value
    return result


Name = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(one_line)]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(one_line)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(one_line)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
