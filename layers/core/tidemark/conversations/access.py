"""Who may see a conversation, and what a turn in it may use: agent, model window, memory."""

from dataclasses import dataclass, replace

from pynamodb.exceptions import PynamoDBException

from tidemark.conversations.budget import Budget, budget
from tidemark.conversations.model import ConversationState
from tidemark.conversations.store import ConversationStore
from tidemark.errors import InvalidError, NotFoundError, TidemarkError
from tidemark.memory.scope import Scope, resolve
from tidemark.models import tokenizer
from tidemark.models.ports import ModelRequest
from tidemark.models.registry import ModelInfo, lookup
from tidemark.models.reported import needed_factor, uncounted
from tidemark.observability import logger
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import Agent, MemorySettings, memory_settings
from tidemark.tenancy.registry import Agents, KnowledgeBases
from tidemark.tenancy.tenants import TenantService, site_settings


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a turn, read once at its beginning."""

    agent: Agent
    model: ModelInfo
    budget: Budget
    memory: MemorySettings
    scope: Scope | None


class ConversationAccess:
    def __init__(
        self,
        store: ConversationStore,
        tenants: TenantService,
        agents: Agents,
        knowledge_bases: KnowledgeBases,
        default_model_id: str,
    ) -> None:
        self._store, self._tenants, self._agents, self._bases = store, tenants, agents, knowledge_bases
        self._default_model_id = default_model_id

    def find(self, caller: Caller, conversation_id: str) -> ConversationState:
        """Raises NotFoundError for a conversation that is missing, going, or not this caller's."""
        state = self._store.get(caller.tenant_id, conversation_id)
        if state is None or state.state != "active" or not caller.owns(state.external_subject_id):
            raise NotFoundError
        return state

    def need_source(self, caller: Caller, conversation_id: str | None, message_id: str | None) -> None:
        """Whether a memory may say that it comes from there. Raises NotFoundError for what is not this caller's, InvalidError for a
        message without its conversation."""
        if conversation_id is None:
            if message_id is not None:
                raise InvalidError.field("/source_conversation_id", "A source message is named with its conversation.")
            return
        state = self.find(caller, conversation_id)
        if message_id is not None and self._store.message(state, message_id) is None:
            raise NotFoundError

    def setting(self, caller: Caller, state: ConversationState) -> Setting:
        """Agent, window and memory scope of a turn. A conversation whose agent or knowledge base is gone follows the tenant's defaults."""
        tenant = self._tenants.stored(caller.tenant_id)
        agent = self._agent(caller.tenant_id, state.agent_id, tenant.default_agent_id)
        memory = memory_settings(tenant.memory_settings, site_settings())
        found = lookup(agent.model_id or self._default_model_id)
        model = replace(found, factor=max(found.factor, tenant.token_factors.get(found.id, 0.0)))
        config = agent.context_compression_config
        window = config.context_window or model.context_window
        output = config.max_output_tokens or model.max_output_tokens
        return Setting(
            agent=agent,
            model=model,
            budget=budget(window, output, state.preferences.autocompact_pct),
            memory=memory,
            scope=self._scope(caller, state, agent, memory),
        )

    def heard(self, caller: Caller, setting: Setting, request: ModelRequest, counted: int, reported: int) -> tuple[int, float]:
        """Learns from what the provider reported of a request. Answers the tokens by which our count was under, and the model's factor.

        Best effort: a factor that could not be kept is learned by the next turn.
        """
        missing, factor = uncounted(counted, reported), setting.model.factor
        if missing:
            factor = max(factor, needed_factor(tokenizer.count_request(request), reported))
            logger.warning("tokens were counted under", model=setting.model.id, counted=counted, reported=reported, factor=factor)
            if factor > setting.model.factor:
                try:
                    self._tenants.raise_token_factor(caller.tenant_id, setting.model.id, factor)
                except (TidemarkError, PynamoDBException) as exc:
                    logger.warning("token factor not kept", error=type(exc).__name__)
        return missing, factor

    def _agent(self, tenant_id: str, agent_id: str, default_id: str) -> Agent:
        try:
            return self._agents.find(tenant_id, agent_id)
        except NotFoundError:
            return self._agents.find(tenant_id, default_id)

    def _scope(self, caller: Caller, state: ConversationState, agent: Agent, memory: MemorySettings) -> Scope | None:
        mode = None
        if state.knowledge_base_id is not None:
            try:
                mode = self._bases.find(caller.tenant_id, state.knowledge_base_id).kbMemoryMode
            except NotFoundError:
                mode = "disabled"  # of a base that was deleted nothing is recalled or stored
        return resolve(
            dashboard=caller.is_dashboard,
            external_subject_id=None if caller.is_dashboard else state.external_subject_id,
            knowledge_base_id=state.knowledge_base_id,
            kb_mode=mode,
            mode=memory.mode,
            agent_enabled=agent.enable_memory,
        )
