"""ETags of single resources, and what If-Match says of them."""

import hashlib

from pydantic import BaseModel

from tidemark.errors import PreconditionFailedError


def etag(resource: BaseModel) -> str:
    """The tag of a resource as it is answered."""
    return f'"{hashlib.sha256(resource.model_dump_json().encode()).hexdigest()[:24]}"'


def matches(if_match: str | None, current: str) -> bool:
    """Whether a write with this If-Match may go on; without one it may."""
    if if_match is None or if_match.strip() == "*":
        return True
    return current in [tag.strip() for tag in if_match.split(",")]


def check(if_match: str | None, current: str) -> None:
    """Raises PreconditionFailedError for a write that was meant for another version."""
    if not matches(if_match, current):
        raise PreconditionFailedError
