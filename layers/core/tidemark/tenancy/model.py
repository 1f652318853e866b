"""Tenants and what they set: keys, agents, knowledge bases, memory settings, usage, audit."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidemark.clock import Time
from tidemark.memory.model import Importance
from tidemark.requests import Body, Name, Number
from tidemark.tenancy.caller import Actor, Scope

KbMemoryMode = Literal["disabled", "subject", "kb_restricted"]
Mode = Literal["disabled", "durable"]
Retention = Literal["none", "explicit_only", "automatic"]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


# tenants
class Tenant(Record):
    id: str
    name: str
    state: Literal["active", "deleting"] = "active"
    created_at: Time


class StoredTenant(Tenant):
    """A tenant with what it set itself; what it did not set is inherited."""

    default_agent_id: str
    memory_settings: dict[str, Any] = Field(default_factory=dict)
    token_factors: dict[str, float] = Field(default_factory=dict)  # by model id, learned from what its provider reported


class TenantBody(Body):
    name: Name


# memory settings
class ExtractionSettings(Record):
    async_enabled: bool
    model_id: str
    cooldown_seconds: int
    max_pending_turns: int
    importance_threshold: Importance = "medium"


class MemorySettings(Record):
    """What a tenant's memory does, everything inherited filled in."""

    mode: Mode = "disabled"
    retention: Retention = "explicit_only"
    half_life_days: float = 30
    recency_weight: float = 0.15
    time_window_days: int | None = None
    context_tokens: int = 1500
    extraction: ExtractionSettings
    secrets: Literal["refuse", "redact"] = "redact"


class ExtractionSettingsPatch(Body):
    async_enabled: bool | None = None
    model_id: Annotated[str, StringConstraints(max_length=255)] | None = None
    cooldown_seconds: int | None = Field(default=None, ge=10, le=3600)
    max_pending_turns: int | None = Field(default=None, ge=1, le=50)
    importance_threshold: Importance | None = None


class MemorySettingsPatch(Body):
    mode: Mode | None = None
    retention: Retention | None = None
    half_life_days: Number | None = Field(default=None, gt=0, le=36_500)
    recency_weight: Number | None = Field(default=None, ge=0, le=1)
    time_window_days: int | None = Field(default=None, ge=1, le=36_500)
    context_tokens: int | None = Field(default=None, ge=0, le=100_000)
    extraction: ExtractionSettingsPatch | None = None
    secrets: Literal["refuse", "redact"] | None = None


class MemorySiteSettings(Body):
    """Platform defaults that tenants inherit (Clouisle's category `memory`). Asynchronous extraction is on by default here:
    retention `automatic` already is the opt-in."""

    memory_async_extraction_enabled: bool
    memory_extraction_model_id: Annotated[str, StringConstraints(max_length=255)]
    memory_extraction_cooldown_seconds: int = Field(ge=10, le=3600)
    memory_extraction_max_pending_turns: int = Field(ge=1, le=50)


DEFAULT_SITE_SETTINGS = MemorySiteSettings(
    memory_async_extraction_enabled=True,
    memory_extraction_model_id="",
    memory_extraction_cooldown_seconds=180,
    memory_extraction_max_pending_turns=6,
)


class SiteSettings(Body):
    category: Literal["memory"]
    settings: MemorySiteSettings


def memory_settings(own: dict[str, Any], site: MemorySiteSettings) -> MemorySettings:
    """The settings in force: the tenant's own over the platform's."""
    inherited = {
        "async_enabled": site.memory_async_extraction_enabled,
        "model_id": site.memory_extraction_model_id,
        "cooldown_seconds": site.memory_extraction_cooldown_seconds,
        "max_pending_turns": site.memory_extraction_max_pending_turns,
    }
    return MemorySettings.model_validate({**own, "extraction": {**inherited, **own.get("extraction", {})}})


def _no_default(schema: dict[str, Any]) -> None:
    """A partial change has no default: what it leaves out stays."""
    schema.pop("default", None)


# agents
class MemoryConfig(Record):
    max_memories_per_retrieval: int = 10
    auto_extract: bool = True
    importance_threshold: Importance = "medium"


class CompressionConfig(Record):
    enabled: bool = True
    context_window: int | None = None
    max_output_tokens: int | None = None
    tail_max_tokens: int = 20_000
    summary_max_tokens: int = 1000
    emit_sse_events: bool = True


class Agent(Record):
    id: str
    name: str
    system_prompt: str = ""
    model_id: str = ""
    enable_memory: bool = False
    memory_config: MemoryConfig = MemoryConfig()
    context_compression_config: CompressionConfig = CompressionConfig()
    is_default: bool = False
    created_at: Time
    updated_at: Time


class MemoryConfigPatch(Body):
    max_memories_per_retrieval: int | None = Field(default=None, ge=1, le=50)
    auto_extract: bool | None = None
    importance_threshold: Importance | None = None


class CompressionConfigPatch(Body):
    enabled: bool | None = None
    context_window: int | None = Field(default=None, ge=4000, le=100_000_000)
    max_output_tokens: int | None = Field(default=None, ge=1, le=10_000_000)
    tail_max_tokens: int | None = Field(default=None, ge=0, le=10_000_000)
    summary_max_tokens: int | None = Field(default=None, ge=128, le=8000)
    emit_sse_events: bool | None = None


SystemPrompt = Annotated[str, StringConstraints(max_length=200_000)]
ModelId = Annotated[str, StringConstraints(max_length=255)]


class AgentPatch(Body):
    name: Name = Field(default="", json_schema_extra=_no_default)
    system_prompt: SystemPrompt | None = None
    model_id: ModelId | None = None
    enable_memory: bool | None = None
    memory_config: MemoryConfigPatch | None = None
    context_compression_config: CompressionConfigPatch | None = None


class AgentBody(AgentPatch):
    name: Name


# knowledge bases
class KnowledgeBase(Record):
    id: str
    tenant_id: str
    name: str
    kbMemoryMode: KbMemoryMode = "subject"
    created_at: Time
    updated_at: Time


class KnowledgeBasePatch(Body):
    name: Name = Field(default="", json_schema_extra=_no_default)
    kbMemoryMode: KbMemoryMode | None = None


class KnowledgeBaseBody(KnowledgeBasePatch):
    name: Name


# API keys
class ApiKey(Record):
    id: str
    name: str
    prefix: str
    scopes: list[Scope]
    expires_at: Time | None = None
    last_used_at: Time | None = None
    created_at: Time
    revoked_at: Time | None = None


class StoredApiKey(ApiKey):
    tenant_id: str
    secret_sha256: str
    requests_per_minute: int | None = None


class CreatedApiKey(ApiKey):
    secret: str | None


class ApiKeyBody(Body):
    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    expires_at: Time | None = None
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)


# what happened
class AuditEntry(Record):
    id: str
    at: Time
    actor: Actor
    action: str
    resource: str
    decision: str
    details: dict[str, Any] = Field(default_factory=dict)


class UsageDay(Record):
    date: str
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    memories: int = 0
    messages: int = 0


class UsageAnswer(Record):
    items: list[UsageDay]


class Receipt(Record):
    counts: dict[str, int]


class Operation(Record):
    id: str
    kind: str
    state: Literal["running", "completed", "failed"]
    receipt: Receipt
    created_at: Time
    completed_at: Time | None = None
