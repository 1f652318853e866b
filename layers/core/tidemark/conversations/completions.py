"""Chat completions: a turn of a conversation where one is named, else an answer that leaves nothing behind.

Without a conversation the caller keeps the history and sends all of it. What is recalled is then what is known of the subject, and the
model may look for more of it with the tools that read memory; nothing is stored and nothing is learned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemark import ids
from tidemark.clock import now
from tidemark.conversations import assembly
from tidemark.conversations.access import ConversationAccess, Setting
from tidemark.conversations.agent_tools import AgentTools
from tidemark.conversations.assembly import Parts, RecalledBlock
from tidemark.conversations.history import head
from tidemark.conversations.model import ConversationState
from tidemark.conversations.requests import CompletionTurn
from tidemark.conversations.turns import Event, TurnService, instructed, told
from tidemark.memory.questions import said
from tidemark.memory.turn_memory import TurnMemory
from tidemark.models import tokenizer
from tidemark.models.ports import Model, ModelMessage, ModelRequest, ModelResponse, ToolDefinition
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.registry import Agents, KnowledgeBases
from tidemark.tenancy.tenants import TenantService


@dataclass(frozen=True, slots=True)
class Completion:
    """What a client asks for: the whole history that it sent, and the part of it that is new as a turn."""

    turn: CompletionTurn
    history: tuple[ModelMessage, ...]
    conversation_id: str | None = None
    knowledge_base_id: str | None = None


class Completions:
    def __init__(
        self,
        turns: TurnService,
        access: ConversationAccess,
        memory: TurnMemory,
        tenants: TenantService,
        agents: Agents,
        knowledge_bases: KnowledgeBases,
        model: Model,
        default_model_id: str,
        agent_tools: AgentTools | None = None,
    ) -> None:
        self._turns, self._access, self._memory = turns, access, memory
        self._tenants, self._agents, self._bases = tenants, agents, knowledge_bases
        self._model, self._default_model_id = model, default_model_id
        self._agent_tools = agent_tools

    def models(self, caller: Caller) -> list[str]:
        """The models that answer in this tenant, the default one first."""
        default = self._tenants.stored(caller.tenant_id).default_agent_id
        found, _ = self._agents.page(caller.tenant_id, 100, None)
        agents = sorted(found, key=lambda agent: agent.id != default)
        return list(dict.fromkeys([*(agent.model_id or self._default_model_id for agent in agents), self._default_model_id]))

    def run(self, caller: Caller, asked: Completion, deadline: datetime) -> Iterator[Event]:
        """The events of an answer, as a turn has them; errors are raised."""
        if asked.knowledge_base_id is not None:
            self._bases.find(caller.tenant_id, asked.knowledge_base_id)
        if asked.conversation_id is not None:
            return self._turns.run(caller, asked.conversation_id, asked.turn, deadline, raising=True)
        return self._stateless(caller, asked, deadline)

    def _stateless(self, caller: Caller, asked: Completion, deadline: datetime) -> Iterator[Event]:
        state = self._nowhere(caller, asked)
        setting = self._access.setting(caller, state)
        recalled = RecalledBlock()
        if setting.scope is not None and asked.turn.content is not None:
            recent = (said(message.role, message.content) for message in reversed(asked.history[:-1]) if message.role != "tool")
            recalled = self._memory.recall(caller.tenant_id, setting, state, head(state), asked.turn.content, recent)
            recalled = assembly.without_said(recalled, asked.history, setting.model.factor)
        given = tuple(ToolDefinition(**tool.model_dump()) for tool in asked.turn.tools)
        own = self._agent_tools.offered(setting, frozenset(tool.name for tool in given), stored=False) if self._agent_tools else ()
        request = _request(setting, recalled, asked, own, given).model_copy(update={"deadline": deadline})
        turn_id = ids.new_id("trn")
        yield Event("message_start", {"conversation_id": None, "turn_id": turn_id})
        names = frozenset(tool.name for tool in own)
        response = yield from told(
            self._agent_tools.stream(caller, setting, state, request, names)
            if self._agent_tools is not None and own
            else self._model.stream(request)
        )
        counted = tokenizer.count_request(request, setting.model.factor)
        self._access.heard(caller, setting, request, counted, response.request_tokens)
        usage.add(caller.tenant_id, input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens)
        yield Event("message_end", _end(response, turn_id, request.memory is not None))

    def _nowhere(self, caller: Caller, asked: Completion) -> ConversationState:
        """A conversation that is never stored: it says whose memory is recalled, and how."""
        at = now()
        return ConversationState(
            id=ids.new_id("cnv"),
            tenant_id=caller.tenant_id,
            external_subject_id=caller.external_subject_id,
            knowledge_base_id=asked.knowledge_base_id,
            agent_id=self._tenants.stored(caller.tenant_id).default_agent_id,
            workspace_id=None,
            title=None,
            metadata={},
            created_at=at,
            updated_at=at,
            last_activity_at=at,
        )


def _request(
    setting: Setting, recalled: RecalledBlock, asked: Completion, own: tuple[ToolDefinition, ...], given: tuple[ToolDefinition, ...]
) -> ModelRequest:
    """The request, without our tools and then without the recalled memory where there is no room. Raises InvalidError where it does not
    fit at all."""
    setting = instructed(setting, asked.turn)
    factor = setting.model.factor
    parts = Parts(
        system=tokenizer.count(assembly.system_prompt(setting), factor) + tokenizer.MESSAGE_OVERHEAD,
        tools=tokenizer.count_tools(given, factor),
        current=_weight(asked.history, factor),
    )
    if parts.total + recalled.tokens > setting.budget.input_budget:
        recalled = RecalledBlock()
    assembly.check_fits(parts, setting, automatic=False)
    if parts.total + recalled.tokens + tokenizer.count_tools(own, factor) > setting.budget.input_budget:
        own = ()
    reserve = setting.budget.output_reserve
    return ModelRequest(
        purpose="turn",
        model_id=setting.model.id,
        system=assembly.system_prompt(setting),
        memory=recalled.block or None,
        messages=asked.history,
        tools=(*own, *given),
        max_tokens=min(asked.turn.max_tokens or reserve, reserve),
    )


def _weight(messages: Sequence[ModelMessage], factor: float) -> int:
    return sum(tokenizer.count_message(message, factor) for message in messages)


def _end(response: ModelResponse, turn_id: str, memory_used: bool) -> dict[str, object]:
    """What a turn's message_end has that a completion reads."""
    return {
        "message": {"content": response.text, "tool_calls": [call.model_dump() for call in response.tool_calls]},
        "conversation_id": None,
        "turn_id": turn_id,
        "metadata": {
            "memory_used": memory_used,
            "compacted": False,
            "model": response.model,
            "usage": response.usage.model_dump(),
            "finish_reason": response.finish_reason,
        },
    }
