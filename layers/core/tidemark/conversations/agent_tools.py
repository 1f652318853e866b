"""The agent's own tools inside a turn: the model may read memory and past sessions, and where its agent learns, write memory.

Rounds with these tools are part of making one answer: nobody but the model sees them and they are not stored. Calls of the caller's tools
end the turn as ever. A round that mixes both is answered for ours only; the model then makes its other calls again.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tidemark.conversations.access import Setting
from tidemark.conversations.model import ConversationState
from tidemark.errors import InvalidError, TidemarkError
from tidemark.memory.secrets import has_secret
from tidemark.models import tokenizer
from tidemark.models.ports import (
    Model,
    ModelMalformedError,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from tidemark.observability import logger, where
from tidemark.tenancy.caller import Caller
from tidemark.tools.catalog import Tool, Tools

STEPS = 5  # rounds with tools before the model has to answer without them
RESULT_CHARACTERS = 6_000
SHARE = 8  # the definitions take at most this part of the input budget
MEMORY = ("search_memory", "get_memory_subgraph")
READING = (*MEMORY, "session_search", "session_read_summary", "recall_context")
WRITING = ("create_memory_entity", "create_memory_relation", "update_memory_entity")
AGENT_SCOPES = frozenset(("chat", "memory:read", "memory:write"))
LATER = '{"code": "not_run", "detail": "Call this tool again, without tools of memory or sessions beside it."}'


class AgentTools:
    def __init__(self, model: Model, tools: Callable[[], Tools]) -> None:
        self._model, self._tools = model, tools

    def offered(self, setting: Setting, taken: frozenset[str], *, stored: bool = True) -> tuple[ToolDefinition, ...]:
        """The tools that the turn's agent may use, unless they take too much of a small window; a name that is `taken` is the caller's.
        Where no conversation is `stored` there is no session to read and nothing is written."""
        if setting.scope is None:
            return ()
        writes = setting.agent.memory_config.auto_extract and setting.memory.retention == "automatic"
        names = (*READING, *(WRITING if writes else ())) if stored else MEMORY
        found = [tool for tool in self._tools().named(names) if tool.name not in taken]
        definitions = tuple(_definition(tool) for tool in found)
        return definitions if tokenizer.count_tools(definitions, setting.model.factor) <= setting.budget.input_budget // SHARE else ()

    def stream(
        self, caller: Caller, setting: Setting, state: ConversationState, request: ModelRequest, own: frozenset[str]
    ) -> Iterator[TextDelta | ModelResponse]:
        """As a model streams: the texts of all rounds, then one response with calls of the caller's tools only."""
        speaker = _speaker(caller, state)
        texts: list[str] = []
        usage = Usage(input_tokens=0, output_tokens=0)
        first: int | None = None
        for step in range(STEPS + 1):
            if step == STEPS or self._is_full(setting, request):
                request = request.model_copy(update={"tools": tuple(tool for tool in request.tools if tool.name not in own)})
            response: ModelResponse | None = None
            for event in self._model.stream(request):
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                    yield event
                else:
                    response = event
            if response is None:
                return
            first = response.usage.input_tokens if first is None else first
            usage = Usage(
                input_tokens=usage.input_tokens + response.usage.input_tokens,
                output_tokens=usage.output_tokens + response.usage.output_tokens,
            )
            if step == STEPS or not any(call.name in own for call in response.tool_calls):
                yield _final(response, "".join(texts), usage, own).model_copy(update={"first_input_tokens": first})
                return
            request = request.model_copy(update={"messages": (*request.messages, *self._round(speaker, setting, state, response, own))})

    def _is_full(self, setting: Setting, request: ModelRequest) -> bool:
        room = setting.budget.input_budget - tokenizer.count_request(request, setting.model.factor)
        return room < tokenizer.scaled(RESULT_CHARACTERS // 2, setting.model.factor)

    def _round(
        self, caller: Caller, setting: Setting, state: ConversationState, response: ModelResponse, own: frozenset[str]
    ) -> Iterator[ModelMessage]:
        yield ModelMessage(role="assistant", content=response.text, tool_calls=response.tool_calls)
        for call in response.tool_calls:
            result = self._result(caller, setting, state, call) if call.name in own else LATER
            yield ModelMessage(role="tool", content=result[:RESULT_CHARACTERS], tool_call_id=call.id)

    def _result(self, caller: Caller, setting: Setting, state: ConversationState, call: ToolCall) -> str:
        """A tool that fails says so to the model; it never fails the turn."""
        arguments: dict[str, Any] = dict(call.arguments)
        if "conversation_id" in self._tools().named((call.name,))[0].arguments.model_fields:
            arguments.setdefault("conversation_id", state.id)
        try:
            if call.name in WRITING and has_secret(json.dumps(arguments, ensure_ascii=False)):
                raise InvalidError("Credentials are not kept in memory.", code="secret_refused")
            return json.dumps(self._tools().call(caller, call.name, arguments), ensure_ascii=False)
        except TidemarkError as error:
            return json.dumps({"code": error.code, "detail": error.detail, "errors": [one.message for one in error.errors]})
        except Exception as exc:  # noqa: BLE001 - memory is best effort inside a turn
            logger.error("agent tool failed", tool=call.name, error=type(exc).__name__, where=where(exc))
            return json.dumps({"code": "internal_error", "detail": "The tool failed."})


def _final(response: ModelResponse, text: str, usage: Usage, own: frozenset[str]) -> ModelResponse:
    """Raises ModelMalformedError for a model that will do nothing but call tools that it is not offered any more."""
    others = tuple(call for call in response.tool_calls if call.name not in own)
    if not text and not others:
        raise ModelMalformedError("the model gave no answer after its tools")
    finish = "stop" if response.tool_calls and not others else response.finish_reason
    return response.model_copy(update={"text": text, "usage": usage, "tool_calls": others, "finish_reason": finish})


def _speaker(caller: Caller, state: ConversationState) -> Caller:
    """Who the tools act for: the conversation's subject or knowledge base, whatever the token itself may do outside of a turn."""
    subject = None if caller.is_dashboard else state.external_subject_id
    return caller.model_copy(
        update={
            "scopes": AGENT_SCOPES,
            "external_subject_id": subject,
            "knowledge_base_id": state.knowledge_base_id,
            "trust": "assistant",  # what a model writes is its word, not the user's
        }
    )


def _definition(tool: Tool) -> ToolDefinition:
    """A tool as a model reads it; the conversation is the present one unless it names another."""
    schema = tool.arguments.model_json_schema()
    required = [name for name in schema.get("required", []) if name != "conversation_id"]
    schema = {**schema, "required": required} if required else {name: value for name, value in schema.items() if name != "required"}
    return ToolDefinition(name=tool.name, description=tool.description, parameters=schema)
