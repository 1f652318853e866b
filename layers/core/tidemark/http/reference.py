"""The contract as a file, and a page to read it."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

PACKAGE = files("tidemark.http")


@cache
def openapi_file() -> dict[str, Any]:
    """The committed OpenAPI file. `make openapi` writes it from the handlers."""
    found: dict[str, Any] = json.loads(PACKAGE.joinpath("openapi.json").read_text())
    return found


@cache
def docs_page() -> str:
    return PACKAGE.joinpath("docs.html").read_text()
