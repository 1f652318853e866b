"""What every HTTP function is made of: a resolver that validates, and a handler around it that keeps the contract's manners."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol, TypeVar, cast, get_args
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.depends import Depends
from aws_lambda_powertools.event_handler.exceptions import NotFoundError as NoRoute
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.compat import field_annotation_is_sequence
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestUnsupportedContentType, RequestValidationError
from aws_lambda_powertools.event_handler.request import Request
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel, TypeAdapter, ValidationError

from tidemark.clock import now
from tidemark.errors import InvalidError, NotFoundError, RateLimitedError, TidemarkError, UnauthorizedError, UnsupportedMediaTypeError
from tidemark.etags import etag
from tidemark.http import json_body
from tidemark.http.idempotency import Idempotency, Proxy
from tidemark.http.problems import from_validation, problem, status_of
from tidemark.observability import logger, where
from tidemark.privacy import traces
from tidemark.requests import Subject
from tidemark.settings import Settings
from tidemark.tenancy import audit, rate_limits
from tidemark.tenancy.caller import Caller, Scope

R = TypeVar("R", bound=BaseModel)
Headers = dict[str, list[str]]

PROBLEM = "application/problem+json"
EXPOSED = "ETag, X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Idempotency-Replayed, Link"
ALLOWED_METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, X-Request-Id"
# all that answers without a token
OPEN_PATHS = frozenset(("/health", "/openapi.json", "/docs", "/console"))
OPEN_FOLDER = "/console/"
SCOPE_PARAMETERS = ("external_subject_id", "knowledge_base_id")
_SUBJECT = TypeAdapter(Subject)


# what routes ask for
def _caller(request: Request) -> Caller:
    """The caller that the authorizer found, with the subject and knowledge base that the query names."""
    return caller_of(cast(APIGatewayProxyEvent, request.resolved_event).raw_event)


def caller_of(event: dict[str, Any]) -> Caller:
    caller = Caller.model_validate_json(event["requestContext"]["authorizer"]["caller"])
    query = event.get("multiValueQueryStringParameters") or {}
    subject, base = (_single(query, name) for name in SCOPE_PARAMETERS)
    if subject is not None:
        try:
            _SUBJECT.validate_python(subject)
        except ValidationError as exc:
            raise InvalidError.field("external_subject_id", "1 to 256 printable characters are expected.") from exc
    return caller.model_copy(update={"external_subject_id": subject, "knowledge_base_id": base})


def subject_of(segment: str) -> str:
    """The subject that a path segment stands for. Raises InvalidError."""
    try:
        return _SUBJECT.validate_python(unquote(segment, errors="strict"))
    except (ValidationError, UnicodeDecodeError) as exc:
        raise InvalidError.field("external_subject_id", "1 to 256 printable characters are expected.") from exc


def _single(query: dict[str, list[str]], name: str) -> str | None:
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise InvalidError.field(name, "This parameter is given more than once.")
    return values[0]


def _with_scope(scope: Scope) -> Callable[[Request], Caller]:
    def caller(request: Request) -> Caller:
        found = _caller(request)
        found.need(scope)
        return found

    return caller


AnyCaller = Annotated[Caller, Depends(_caller)]
ChatCaller = Annotated[Caller, Depends(_with_scope("chat"))]
MemoryReader = Annotated[Caller, Depends(_with_scope("memory:read"))]
MemoryWriter = Annotated[Caller, Depends(_with_scope("memory:write"))]
Administrator = Annotated[Caller, Depends(_with_scope("admin"))]


def _if_match(request: Request) -> str | None:
    return next((value for name, value in request.headers.items() if name.lower() == "if-match"), None)


def _accept(request: Request) -> str:
    return next((value for name, value in request.headers.items() if name.lower() == "accept"), "")


IfMatch = Annotated[str | None, Depends(_if_match)]
Accept = Annotated[str, Depends(_accept)]


# what routes answer
def answer(resource: R, status: int = 200) -> Response[R]:
    return Response(status, content_type="application/json", body=resource)


def created(resource: R) -> Response[R]:
    return answer(resource, 201)


def tagged(resource: R, status: int = 200, tag: str | None = None) -> Response[R]:
    """A single resource with its ETag."""
    return Response(status, content_type="application/json", body=resource, headers={"ETag": tag or etag(resource)})


def no_content() -> Response[None]:
    return Response(204, content_type=None)


def deadline(app: APIGatewayRestResolver) -> datetime:
    """When this invocation ends."""
    return now() + timedelta(milliseconds=app.lambda_context.get_remaining_time_in_millis())


# the resolver
def api() -> APIGatewayRestResolver:
    """A resolver that validates requests and turns every error into a problem."""
    app = APIGatewayRestResolver(enable_validation=True, json_body_deserializer=json_body.loads)
    app.use(middlewares=[_known_parameters])

    def told(error: TidemarkError) -> Response[Any]:
        return problem_response(error, app.current_event.request_context.request_id or "")

    def invalid(error: RequestValidationError) -> Response[Any]:
        return told(from_validation(error.errors()))

    def media(_: RequestUnsupportedContentType) -> Response[Any]:
        return told(UnsupportedMediaTypeError("The body has to be application/json."))

    def no_route(_: NoRoute) -> Response[Any]:
        return told(NotFoundError("There is no such route.", code="route_not_found"))

    app.exception_handler(TidemarkError)(told)
    app.exception_handler(RequestValidationError)(invalid)
    app.exception_handler(RequestUnsupportedContentType)(media)
    app.not_found(no_route)
    return app


def problem_response(error: TidemarkError, request_id: str) -> Response[Any]:
    headers: dict[str, str | list[str]] = {}
    if "retry_after" in error.extra:
        headers["Retry-After"] = str(error.extra["retry_after"])
    # as text: the resolver writes only application/json itself, and API Gateway takes no other body
    return Response(status_of(error), content_type=PROBLEM, body=json_body.dumps(problem(error, request_id)), headers=headers)


def _known_parameters(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response[Any]:
    """Refuses query parameters that the route does not have, and repeated ones that it takes once."""
    known = {field.alias: field for field in app.context["_route"].dependant.query_params}
    for name, values in (app.current_event.multi_value_query_string_parameters or {}).items():
        if name in SCOPE_PARAMETERS:
            continue
        if name not in known:
            raise InvalidError.field(name, "This parameter is not known here.")
        if len(values) > 1 and not _takes_several(known[name].field_info.annotation):
            raise InvalidError.field(name, "This parameter is given more than once.")
    return next_middleware(app)


def _takes_several(annotation: Any) -> bool:
    """Whether a parameter is a list, an optional one included."""
    return field_annotation_is_sequence(annotation) or any(field_annotation_is_sequence(one) for one in get_args(annotation))


# the handler around it
class Routes(Protocol):
    def resolve(self, event: dict[str, Any], context: Any) -> dict[str, Any]: ...


class Handler:
    """A Lambda handler of API Gateway's proxy events. `heading` gets the headers that any answer will have, before it is served."""

    def __init__(
        self,
        app: Routes,
        settings: Callable[[], Settings],
        idempotency: Callable[[], Idempotency],
        heading: Callable[[Headers], None] = lambda _: None,
    ) -> None:
        self._app, self._settings, self._idempotency, self._heading = app, settings, idempotency, heading

    def __call__(self, event: dict[str, Any], context: LambdaContext) -> Proxy:
        started, settings = time.monotonic(), self._settings()
        request_id = event["requestContext"].get("requestId") or context.aws_request_id
        event["requestContext"]["requestId"] = request_id
        if event["httpMethod"] == "OPTIONS":
            return _preflight(event, settings.cors_origins)
        caller = _known_caller(event)
        common = {"X-Request-Id": [request_id], **cors(event, settings.cors_origins)}
        try:
            standing = rate_limits.take(caller, settings.tenant_requests_per_minute) if caller else None
            common |= _limits(caller, standing) if caller else {}
            self._heading(common)
            if standing is not None and standing.retry_after is not None:
                raise RateLimitedError("Too many requests; Retry-After says when to go on.", retry_after=standing.retry_after)
            _check_media_type(event)
            answer = self._serve(caller, event, context)
        except TidemarkError as error:
            answer = proxy(problem_response(error, request_id))
        except Exception as exc:  # noqa: BLE001 - the last line: whatever it is, the client gets a problem and the log its place
            logger.error("unexpected error", error=type(exc).__name__, where=where(exc), request_id=request_id)
            answer = proxy(problem_response(TidemarkError("Something went wrong on our side."), request_id))
        if answer["statusCode"] == 403 and caller:
            _record_refusal(caller, event)
        answer["body"] = answer["body"] or ""
        answer["multiValueHeaders"] = {**answer.get("multiValueHeaders", {}), **common}
        logger.info(
            "request",
            request_id=request_id,
            method=event["httpMethod"],
            resource=event.get("resource"),
            status=answer["statusCode"],
            ms=round((time.monotonic() - started) * 1000),
        )
        return answer

    def _serve(self, caller: Caller | None, event: dict[str, Any], context: LambdaContext) -> Proxy:
        def serve() -> Proxy:
            return self._app.resolve(event, context)

        if caller is None:
            if event["path"] not in OPEN_PATHS and not event["path"].startswith(OPEN_FOLDER):
                raise UnauthorizedError("A valid bearer token is required.")  # whatever the gateway let through
            return serve()
        owner = caller.tenant_id or f"platform:{caller.id}"

        def partition() -> str | None:
            subject = (event.get("queryStringParameters") or {}).get("external_subject_id")
            return traces.place(caller.model_copy(update={"external_subject_id": subject}), event) if caller.tenant_id else None

        return self._idempotency().run(owner, caller.rights, event, context, serve, partition)


def _known_caller(event: dict[str, Any]) -> Caller | None:
    found = (event["requestContext"].get("authorizer") or {}).get("caller")
    return Caller.model_validate_json(found) if found else None


def _limits(caller: Caller, standing: rate_limits.Standing | None) -> Headers:
    """The quota, and what is left of it where that is known."""
    headers: Headers = {"RateLimit-Policy": [f'"default";q={rate_limits.quota_of(caller).requests};w={rate_limits.WINDOW_SECONDS}']}
    if standing is not None:
        headers["RateLimit"] = [f'"default";r={standing.remaining};t={standing.resets}']
    return headers


def _check_media_type(event: dict[str, Any]) -> None:
    if not event.get("body"):
        return
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaTypeError("The body has to be application/json.")


def _record_refusal(caller: Caller, event: dict[str, Any]) -> None:
    if caller.tenant_id:
        audit.record(caller, "refused", f"{event['httpMethod']} {event.get('resource')}", decision="deny")


def proxy(response: Response[Any]) -> Proxy:
    return {
        "statusCode": response.status_code,
        "body": response.body,
        "isBase64Encoded": False,
        "multiValueHeaders": {
            "Content-Type": [str(response.content_type)],
            **{name: [value] if isinstance(value, str) else value for name, value in response.headers.items()},
        },
    }


def _preflight(event: dict[str, Any], origins: str) -> Proxy:
    """What a browser asks before a request of another origin; it needs no token."""
    headers = cors(event, origins)
    if "Access-Control-Allow-Origin" in headers:
        headers |= {
            "Access-Control-Allow-Methods": [ALLOWED_METHODS],
            "Access-Control-Allow-Headers": [ALLOWED_HEADERS],
            "Access-Control-Max-Age": ["600"],
        }
    return {"statusCode": 204, "body": "", "isBase64Encoded": False, "multiValueHeaders": headers}


def cors(event: dict[str, Any], origins: str) -> dict[str, list[str]]:
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    origin = headers.get("origin")
    allowed = [one.strip() for one in origins.split(",") if one.strip()]
    if not origin or (origin not in allowed and "*" not in allowed):
        return {"Vary": ["Origin"]}
    return {"Access-Control-Allow-Origin": [origin], "Access-Control-Expose-Headers": [EXPOSED], "Vary": ["Origin"]}
