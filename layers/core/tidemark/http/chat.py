"""The routes that a model answers, told event by event, for many requests of one process at a time.

A resolver keeps the request it is at in its class, so it can serve one at a time only; what a process of its own streams goes through here.
The functions' handler offers the same routes buffered.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tidemark.clock import now
from tidemark.conversations.completions import Completions
from tidemark.conversations.requests import TurnBody
from tidemark.conversations.turns import Event, TurnService, last
from tidemark.errors import InvalidError, NotFoundError, TidemarkError
from tidemark.http import json_body, openai
from tidemark.http.app import SCOPE_PARAMETERS, Handler, caller_of, cors, problem_response, proxy
from tidemark.http.idempotency import Proxy
from tidemark.http.openai import ChatBody, as_openai, chat_completion, completion
from tidemark.http.problems import from_validation
from tidemark.tenancy.caller import Caller

B = TypeVar("B", bound=BaseModel)

TURN = re.compile(r"/v1/conversations/([^/]+)/messages")
COMPLETIONS = "/v1/chat/completions"


class ChatContext:
    """What stands in for a Lambda context: until when an answer is waited for, and who is told of its events."""

    function_name = "chat_stream"
    memory_limit_in_mb = 0
    invoked_function_arn = ""
    aws_request_id = ""

    def __init__(self, deadline: datetime, tell: Callable[[Event], None]) -> None:
        self.deadline, self.tell = deadline, tell

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.deadline - now()).total_seconds() * 1000))


def is_served(method: str, path: str) -> bool:
    return method == "POST" and (path == COMPLETIONS or TURN.fullmatch(path) is not None)


def wants_stream(path: str, accept: str, body: str) -> bool:
    """Whether events are asked for: by the body, on a conversation's route also by the Accept header."""
    if path != COMPLETIONS and "text/event-stream" in accept.lower():
        return True
    try:
        return json_body.loads(body).get("stream") is True
    except TidemarkError:
        return False


class ChatRoutes:
    """`resolve` tells the events of an answer to its context and gives the whole answer at the end."""

    def __init__(self, turns: Callable[[], TurnService], completions: Callable[[], Completions]) -> None:
        self._turns, self._completions = turns, completions

    def resolve(self, event: dict[str, Any], context: ChatContext) -> Proxy:
        caller = caller_of(event)
        caller.need("chat")
        for name in event.get("multiValueQueryStringParameters") or {}:
            if name not in SCOPE_PARAMETERS:
                raise InvalidError.field(name, "This parameter is not known here.")
        path: str = event["path"]
        if path == COMPLETIONS:
            body = _body(event, ChatBody)
            end = _drained(self._completions().run(naming(caller, body), completion(body), context.deadline), context)
            return _good(chat_completion(end).model_dump(mode="json"))
        found = TURN.fullmatch(path)
        if found is None:
            raise NotFoundError("There is no such route.", code="route_not_found")
        turn = _body(event, TurnBody)
        return _good(_drained(self._turns().run(caller, found[1], turn, context.deadline, raising=True), context))


def naming(caller: Caller, body: ChatBody) -> Caller:
    """The caller with the subject that `user` names. Raises InvalidError where the query names another."""
    if body.user is None:
        return caller
    if caller.external_subject_id not in (None, body.user):
        raise InvalidError.field("/user", "This is another subject than the query's external_subject_id.")
    return caller.model_copy(update={"external_subject_id": body.user})


def _drained(events: Iterator[Event], context: ChatContext) -> dict[str, Any]:
    def told() -> Iterator[Event]:
        for event in events:
            if event.name != "message_end":
                context.tell(event)
            yield event

    return last(told())


def _body(event: dict[str, Any], model: type[B]) -> B:
    """Raises MalformedError and InvalidError as the buffered routes do."""
    if not event.get("body"):
        raise from_validation([{"loc": ("body",), "msg": "Field required"}])
    try:
        return model.model_validate(json_body.loads(event["body"]))
    except ValidationError as exc:
        raise from_validation([{"loc": ("body", *one["loc"]), "msg": one["msg"]} for one in exc.errors()]) from exc


def _good(body: dict[str, Any]) -> Proxy:
    return {
        "statusCode": 200,
        "body": json_body.dumps(body),
        "isBase64Encoded": False,
        "multiValueHeaders": {"Content-Type": ["application/json"]},
    }


class ChatHandler(Handler):
    """The handler of the chat functions: on OpenAI's routes errors have OpenAI's shape."""

    def __call__(self, event: dict[str, Any], context: Any) -> Proxy:
        return in_the_route_s_shape(event["path"], super().__call__(event, context))


def in_the_route_s_shape(path: str, answer: Proxy) -> Proxy:
    return as_openai(answer) if path in openai.ROUTES else answer


def refused(event: dict[str, Any], error: TidemarkError, origins: str) -> Proxy:
    """The answer to a request that does not reach the handler."""
    request_id = event["requestContext"]["requestId"]
    answer = proxy(problem_response(error, request_id))
    answer["multiValueHeaders"] |= {"X-Request-Id": [request_id], **cors(event, origins)}
    return in_the_route_s_shape(event["path"], answer)
