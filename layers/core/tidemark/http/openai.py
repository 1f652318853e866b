"""OpenAI's shapes: what a chat completion is asked with, what it is answered with, whole and in chunks, and how errors look."""

import json
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tidemark.conversations.completions import Completion
from tidemark.conversations.requests import CompletionTurn, EarlierWords, Parameters, Text, ToolBody, ToolResultBody, distinct_tools
from tidemark.errors import InvalidError, MalformedError
from tidemark.http import json_body
from tidemark.http.idempotency import Proxy
from tidemark.models.ports import ModelMessage, ToolCall
from tidemark.requests import Identifier, Subject

ROUTES = ("/v1/chat/completions", "/v1/models")
SYSTEM_ROLES = ("system", "developer")


class Asked(BaseModel):
    """OpenAI documents many parameters and adds more: those that are not named here are accepted and have no effect."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


# the request
class ContentPart(Asked):
    type: Literal["text"]
    text: Text


class FunctionCall(Asked):
    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    arguments: Text = ""


class ChatToolCall(Asked):
    id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Asked):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | Annotated[list[ContentPart], Field(max_length=100)] | None = None
    name: Identifier | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_call_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class FunctionTool(Asked):
    name: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
    description: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    parameters: Parameters | None = None


class ChatTool(Asked):
    type: Literal["function"]
    function: FunctionTool

    @property
    def name(self) -> str:
        return self.function.name


class StreamOptions(Asked):
    include_usage: bool | None = None


class ChatBody(Asked):
    """`model` may be any name: the conversation's agent, or the tenant's default one, says which model answers."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    model: str | None = None
    user: Subject | None = None
    metadata: dict[str, str] | None = None
    tools: Annotated[list[ChatTool], Field(max_length=128), AfterValidator(distinct_tools)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


def completion(body: ChatBody) -> Completion:
    """What a body asks for. Raises InvalidError for messages that nobody can go on with."""
    for place, message in enumerate(body.messages):
        _check(message, f"/messages/{place}")
    metadata = body.metadata or {}
    conversation_id = metadata.get("conversation_id")
    try:
        turn = _turn(body)
    except ValidationError as exc:
        raise InvalidError.field("/messages", "A message or a tool is longer than this route takes.") from exc
    return Completion(
        turn=turn,
        # With a conversation the history that counts is the stored one.
        history=() if conversation_id else _history(body.messages),
        conversation_id=conversation_id,
        knowledge_base_id=metadata.get("knowledge_base_id"),
    )


def _turn(body: ChatBody) -> CompletionTurn:
    """The part that is new: what stands behind the assistant's last message."""
    fresh = _fresh(body.messages)
    results = [ToolResultBody(tool_call_id=message.tool_call_id or "", content=message.text) for message in fresh if message.role == "tool"]
    words = [EarlierWords(content=message.text, name=message.name) for message in fresh if message.role == "user"]
    said: dict[str, Any] = {"content": words[-1].content, "name": words[-1].name} if words else {}
    return CompletionTurn(
        **said,
        tool_results=results,
        tools=[_tool(tool.function) for tool in body.tools or ()],
        max_tokens=body.max_completion_tokens or body.max_tokens,
        instructions="\n\n".join(message.text for message in body.messages if message.role in SYSTEM_ROLES),
        earlier=words[:-1],
    )


def _tool(function: FunctionTool) -> ToolBody:
    return ToolBody(name=function.name, description=function.description or "", parameters=function.parameters or {})


def _fresh(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages behind the last one of the assistant: results of its calls first, then words."""
    start = max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1) + 1
    fresh = [message for message in messages[start:] if message.role not in SYSTEM_ROLES]
    if not fresh:
        raise InvalidError.field("/messages", "The last message has to be the user's or a tool's.")
    roles = [message.role for message in fresh]
    if sorted(roles) != roles:  # "tool" before "user"
        raise InvalidError.field("/messages", "Results of tools stand in front of the user's next words.")
    return fresh


def _history(messages: Sequence[ChatMessage]) -> tuple[ModelMessage, ...]:
    """The messages as a model reads them, every call with its result. Raises InvalidError."""
    made: list[ModelMessage] = []
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        if message.role in SYSTEM_ROLES:
            continue
        where = f"/messages/{place}"
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                raise InvalidError.field(where, "A tool's message answers an open call of the message before it.")
            open_calls.remove(message.tool_call_id or "")
        elif open_calls:
            raise InvalidError.field(where, f"These calls have no result: {', '.join(open_calls)}")
        calls = tuple(_call(call, where) for call in message.tool_calls or ()) if message.role == "assistant" else ()
        open_calls += [call.id for call in calls]
        role = cast(Literal["user", "assistant", "tool"], message.role)
        made.append(ModelMessage(role=role, content=message.text, name=message.name, tool_calls=calls, tool_call_id=message.tool_call_id))
    if open_calls:
        raise InvalidError.field("/messages", f"These calls have no result: {', '.join(open_calls)}")
    return tuple(made)


def _check(message: ChatMessage, where: str) -> None:
    """A message has what its role needs."""
    if message.role == "tool" and (message.content is None or message.tool_call_id is None):
        raise InvalidError.field(where, "A tool's message has content and a tool_call_id.")
    if message.role == "assistant" and message.content is None and not message.tool_calls:
        raise InvalidError.field(f"{where}/content", "Text or tool calls are needed.")
    if message.role not in ("tool", "assistant") and not message.text:
        raise InvalidError.field(f"{where}/content", "Text is needed.")


def _call(call: ChatToolCall, where: str) -> ToolCall:
    try:
        arguments = json_body.loads(call.function.arguments or "{}")
    except (MalformedError, InvalidError) as exc:
        raise InvalidError.field(f"{where}/tool_calls", "The arguments of a call have to be a JSON object.") from exc
    return ToolCall(id=call.id, name=call.function.name, arguments=arguments)


# the answer
class Answered(BaseModel):
    model_config = ConfigDict(frozen=True)


class CalledFunction(Answered):
    name: str
    arguments: str


class MessageToolCall(Answered):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class AnswerMessage(Answered):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[MessageToolCall] | None = None


class Choice(Answered):
    index: int = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: Literal["stop", "length", "tool_calls"]


class CompletionUsage(Answered):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Answered):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage


class ListedModel(Answered):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "tidemark"


class ModelList(Answered):
    object: Literal["list"] = "list"
    data: list[ListedModel]


def completion_id(turn_id: str) -> str:
    return f"chatcmpl-{turn_id.removeprefix('trn_')}"


def chat_completion(end: dict[str, Any]) -> ChatCompletion:
    """A turn's message_end as a completion."""
    message, metadata = end["message"], end["metadata"]
    calls = [
        MessageToolCall(id=call["id"], function=CalledFunction(name=call["name"], arguments=_arguments(call["arguments"])))
        for call in message["tool_calls"]
    ]
    read, said = metadata["usage"]["input_tokens"], metadata["usage"]["output_tokens"]
    finish = metadata["finish_reason"]
    return ChatCompletion(
        id=completion_id(end["turn_id"]),
        created=int(time.time()),
        model=metadata["model"],
        choices=[
            Choice(
                message=AnswerMessage(content=message["content"] or (None if calls else ""), tool_calls=calls or None),
                finish_reason="stop" if finish == "memory_confirmation" else finish,
            )
        ],
        usage=CompletionUsage(prompt_tokens=read, completion_tokens=said, total_tokens=read + said),
    )


def _arguments(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def tool_call_delta(place: int, call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"] if "function" in call else _arguments(call["arguments"])
    name = call["function"]["name"] if "function" in call else call["name"]
    return {"index": place, "id": call["id"], "type": "function", "function": {"name": name, "arguments": arguments}}


# errors
def as_openai(answer: Proxy) -> Proxy:
    """A problem in OpenAI's shape, with the same status and code; any other answer as it is."""
    headers = answer.get("multiValueHeaders", {})
    if not str(headers.get("Content-Type", [""])[0]).startswith("application/problem+json"):
        return answer
    body = error_body(json.loads(answer["body"]))
    return {**answer, "body": json_body.dumps(body), "multiValueHeaders": {**headers, "Content-Type": ["application/json"]}}


def error_body(problem: dict[str, Any]) -> dict[str, Any]:
    errors = problem.get("errors") or [{}]
    message = " ".join(
        filter(None, (problem["detail"], *(one.get("message") for one in errors if one.get("message") != problem["detail"])))
    )
    return {
        "error": {
            "message": message,
            "type": _kind(problem["status"]),
            "param": errors[0].get("path"),
            "code": problem["code"],
        }
    }


def _kind(status: int) -> str:
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    return kinds.get(status, "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error")
