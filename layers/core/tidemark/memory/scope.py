"""Whose memory a call reads and writes: one pure rule over who calls, what is named, and what tenant, knowledge base and agent allow."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidemark.storage import keys
from tidemark.tenancy.model import KbMemoryMode, Mode, Retention

ScopeKind = Literal["tenant", "subject", "knowledge_base"]


class Scope(BaseModel):
    """One place of memory. No memory is in two."""

    model_config = ConfigDict(frozen=True)

    kind: ScopeKind
    external_subject_id: str | None = None
    knowledge_base_id: str | None = None

    @property
    def key(self) -> str:
        """The scope as part of storage and index keys."""
        if self.kind == "subject" and self.external_subject_id is not None:
            return keys.subject_scope(self.external_subject_id)
        if self.kind == "knowledge_base" and self.knowledge_base_id is not None:
            return keys.knowledge_base_scope(self.knowledge_base_id)
        return keys.TENANT_SCOPE


TENANT = Scope(kind="tenant")


def resolve(
    *,
    dashboard: bool,
    external_subject_id: str | None,
    knowledge_base_id: str | None,
    kb_mode: KbMemoryMode | None,
    mode: Mode,
    agent_enabled: bool = True,
) -> Scope | None:
    """AutoSage's table: which memory this caller has, or None where durable memory is skipped.

    `external_subject_id` is the subject that an API call or a dashboard's narrowing names; `kb_mode` is None without a knowledge base.
    """
    if mode == "disabled" or kb_mode == "disabled" or not agent_enabled:
        return None
    if kb_mode == "kb_restricted":
        return Scope(kind="knowledge_base", knowledge_base_id=knowledge_base_id)
    if external_subject_id is not None:
        return Scope(kind="subject", external_subject_id=external_subject_id)
    return TENANT if dashboard else None


def may_learn(scope: Scope | None, retention: Retention, *, auto_extract: bool, wanted: bool) -> bool:
    """Whether what is said in a turn may be learned from later. Fixed when it is stored."""
    return scope is not None and retention == "automatic" and auto_extract and wanted


def may_store_explicitly(scope: Scope | None, retention: Retention) -> bool:
    return scope is not None and retention != "none"
