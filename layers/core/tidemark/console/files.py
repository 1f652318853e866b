"""The web console's files, as its build left them in `static`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

INDEX = "index.html"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".md": "text/markdown"}
# The build puts a hash of the content into every other name.
UNHASHED = (INDEX, "favicon.svg", "licenses.md")


@dataclass(frozen=True)
class File:
    """One file as it is answered. All of them are text, which API Gateway hands on as it is."""

    content: str
    content_type: str
    etag: str
    cache_control: str


@cache
def served() -> Mapping[str, File]:
    """Every file by its name. A request only looks a name up here: nothing that a client writes becomes a path."""
    found = {}
    for path in files("tidemark.console").joinpath("static").iterdir():
        content = path.read_text(encoding="utf-8")
        found[path.name] = File(
            content,
            f"{TYPES[path.name[path.name.rindex('.') :]]}; charset=utf-8",
            f'"{hashlib.sha256(content.encode()).hexdigest()[:24]}"',
            "no-cache" if path.name in UNHASHED else "public, max-age=31536000, immutable",
        )
    return found
