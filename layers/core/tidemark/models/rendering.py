"""What adapters share: how attachments and calls stand in a request, and how calls are read from an answer."""

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from tidemark.models.ports import Attachment, ModelMalformedError, ModelMessage, ToolCall

# Only what would open or close a block is escaped, so that code stays readable and its count true.
BLOCK = re.compile(r"<(?=\s*/?\s*attachment)", re.IGNORECASE)


def words(message: ModelMessage) -> str:
    """The message's own words, exactly; behind them its attachments, each in a block that its text cannot leave."""
    if not message.attachments:
        return message.content
    return "\n\n".join(filter(None, (message.content, *map(_block, message.attachments))))


def _block(attachment: Attachment) -> str:
    return (
        f'<attachment source_id="{_attribute(attachment.source_id)}" title="{_attribute(attachment.title)}">\n'
        f"{BLOCK.sub('&lt;', attachment.text)}\n</attachment>"
    )


def _attribute(text: str) -> str:
    return " ".join(text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;").split())


def schema_instruction(schema: dict[str, Any]) -> str:
    """Asks in words for what a provider cannot be asked for by a parameter."""
    return f"Answer with one JSON object and nothing else. It has to match this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"


def json_object(data: str | bytes, told: str = "an answer that is") -> dict[str, Any]:
    """What a provider or its model wrote. Raises ModelMalformedError for what is no JSON object; `told` names it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ModelMalformedError(f"{told} no JSON") from exc
    if not isinstance(found, dict):
        raise ModelMalformedError(f"{told} no JSON object")
    return found


def arguments_of(text: str) -> dict[str, Any]:
    """A call's arguments. Raises ModelMalformedError for what is no JSON object."""
    return json_object(text, "the arguments of a tool call are") if text.strip() else {}


def calls_of(found: Iterable[tuple[str, str, str]]) -> tuple[ToolCall, ...]:
    """Tool calls from (id, name, arguments): every id is there, and once. Raises ModelMalformedError."""
    calls: list[ToolCall] = []
    for call_id, name, arguments in found:
        if not name:
            raise ModelMalformedError("a tool call names no tool")
        calls.append(ToolCall(id=_own_id(call_id, calls), name=name, arguments=arguments_of(arguments)))
    return tuple(calls)


def _own_id(wanted: str, others: Sequence[ToolCall]) -> str:
    return wanted if wanted and wanted not in {call.id for call in others} else f"call_{secrets.token_hex(12)}"
