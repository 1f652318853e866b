"""The console's files over HTTP: what is served, as what, for how long, and nothing else."""

import re

import pytest
from tidemark.console.files import served

from tests.support import events
from tests.support.world import Answer, World


def fetch(aws: World, path: str, method: str = "GET", **headers: str) -> Answer:
    """As a browser asks, without a token."""
    return aws.serve("console", events.http(method, path, headers=headers))


def test_the_index_names_only_files_that_are_served_beside_it(aws: World) -> None:
    index = fetch(aws, "/console/")
    assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(r'(?:src|href)="([^"]+)"', index.body)
    assert {name.rpartition(".")[2] for name in named} == {"js", "css", "svg"}
    for name in named:
        assert name.startswith("./"), "an address that holds under any stage and domain"
        assert fetch(aws, f"/console/{name[2:]}").status == 200


def test_the_address_without_a_slash_leads_to_the_one_with_it(aws: World) -> None:
    answer = fetch(aws, "/console")
    # relative to /api/console, and to wherever a domain of one's own puts it
    assert (answer.status, answer.headers["location"]) == (308, "console/")


@pytest.mark.parametrize("name", served())
def test_every_file_has_its_type_and_cannot_reach_out(aws: World, name: str) -> None:
    answer = fetch(aws, f"/console/{name}")
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "md": "text/markdown"}
    assert answer.headers["content-type"] == f"{types[name.rpartition('.')[2]]}; charset=utf-8"
    assert answer.body == served()[name].content
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_hashed_files_are_kept_and_the_index_is_asked_for_again(aws: World) -> None:
    hashed = next(name for name in served() if name.endswith(".js"))
    assert fetch(aws, f"/console/{hashed}").headers["cache-control"] == "public, max-age=31536000, immutable"
    assert fetch(aws, "/console/").headers["cache-control"] == "no-cache"


def test_a_file_that_the_browser_has_is_not_sent_again(aws: World) -> None:
    tag = fetch(aws, "/console/").headers["etag"]
    for sent in (tag, f"W/{tag}", f'"other", {tag}'):
        again = fetch(aws, "/console/", **{"If-None-Match": sent})
        assert (again.status, again.body, again.headers["etag"]) == (304, "", tag)
    assert fetch(aws, "/console/", **{"If-None-Match": '"other"'}).status == 200


def test_head_tells_the_same_without_the_file(aws: World) -> None:
    head, whole = fetch(aws, "/console/", "HEAD"), fetch(aws, "/console/")
    assert (head.status, head.body) == (200, "")
    told = ("content-type", "etag", "cache-control", "content-security-policy")
    assert {name: head.headers[name] for name in told} == {name: whole.headers[name] for name in told}


@pytest.mark.parametrize(
    "path", ["nope.js", "files.py", "__init__.py", "../files.py", "..%2Ffiles.py", "%2e%2e/files.py", "static/index.html", "a/b/c", "%00"]
)
def test_what_is_no_file_of_the_console_is_a_problem(aws: World, path: str) -> None:
    answer = fetch(aws, f"/console/{path}")
    assert answer.status == 404
    assert answer.code in ("not_found", "route_not_found")


def test_the_files_are_small_enough_for_a_slow_line() -> None:
    assert sum(len(file.content.encode()) for file in served().values()) < 700_000
