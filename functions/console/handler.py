"""The web console: static files below /console/, open to everybody. What it shows comes over the API, with the visitor's own token."""

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.depends import Depends
from aws_lambda_powertools.event_handler.request import Request
from tidemark import bootstrap
from tidemark.console.files import INDEX, served
from tidemark.errors import NotFoundError
from tidemark.http.app import Handler, api

app = api()
handler = Handler(app, bootstrap.settings, bootstrap.idempotency)

# No other host, no inline script or style, no text that becomes markup (Trusted Types), no frame around it.
SECURITY: dict[str, str | list[str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def _if_none_match(request: Request) -> str:
    return next((value for name, value in request.headers.items() if name.lower() == "if-none-match"), "")


IfNoneMatch = Annotated[str, Depends(_if_none_match)]


@app.head("/console", include_in_schema=False)
@app.get("/console")
def index(if_none_match: IfNoneMatch) -> Response[Any]:
    if not app.current_event.path.endswith("/"):
        # The page names its files relative to this folder, whatever the stage or domain in front of it is called.
        return Response(308, content_type="text/plain", body="", headers={**SECURITY, "Location": "console/"})
    return _file(INDEX, if_none_match)


@app.head("/console/<name>", include_in_schema=False)
@app.get("/console/<name>")
def console_file(name: str, if_none_match: IfNoneMatch) -> Response[Any]:
    return _file(name, if_none_match)


def _file(name: str, if_none_match: str) -> Response[Any]:
    found = served().get(name)
    if found is None:
        raise NotFoundError("There is no such file.")
    headers = {**SECURITY, "ETag": found.etag, "Cache-Control": found.cache_control}
    if found.etag in [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]:
        return Response(304, content_type=found.content_type, body="", headers=headers)
    body = "" if app.current_event.http_method == "HEAD" else found.content
    return Response(200, content_type=found.content_type, body=body, headers=headers)
