"""Who calls: what the authorizer found out of the token, and the subject or knowledge base that the call names."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidemark.errors import ForbiddenError, NotFoundError

Scope = Literal["chat", "memory:read", "memory:write", "admin"]
Role = Literal["admin", "member", "platform"]
ALL_SCOPES: tuple[Scope, ...] = ("chat", "memory:read", "memory:write", "admin")
ROLE_SCOPES: dict[Role, frozenset[Scope]] = {
    "admin": frozenset(ALL_SCOPES),
    "member": frozenset(("chat", "memory:read", "memory:write")),
    "platform": frozenset(),
}


class Actor(BaseModel):
    model_config = ConfigDict(frozen=True)

    kind: str
    id: str


class Caller(BaseModel):
    """One caller of one request. `tenant_id` is empty for the platform's administrator, who belongs to no tenant."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["api_key", "user"]
    id: str
    tenant_id: str
    scopes: frozenset[str]
    role: Role | None = None
    requests_per_minute: int | None = None
    external_subject_id: str | None = None
    knowledge_base_id: str | None = None
    trust: Literal["api", "assistant"] = "api"  # of what is written directly: `assistant` where a model writes for the caller

    @property
    def actor(self) -> Actor:
        return Actor(kind=self.kind, id=self.id)

    @property
    def is_platform(self) -> bool:
        return self.role == "platform"

    @property
    def is_dashboard(self) -> bool:
        return self.kind == "user"

    @property
    def lists_whole_tenant(self) -> bool:
        """Whether lists go over all subjects: a dashboard user who names none."""
        return self.is_dashboard and self.external_subject_id is None

    @property
    def is_admin(self) -> bool:
        return "admin" in self.scopes

    @property
    def rights(self) -> frozenset[str]:
        """What the token may, comparable with another token's of the same tenant: the more it holds, the more it may."""
        return self.scopes | ({"dashboard"} if self.is_dashboard else set())

    def need(self, scope: Scope) -> None:
        """Raises ForbiddenError where the token does not have the scope."""
        if scope not in self.scopes:
            raise ForbiddenError(f"This needs the scope {scope}.", code="insufficient_scope")

    def need_platform(self) -> None:
        if not self.is_platform:
            raise ForbiddenError("This is for the platform's administrator.")

    def need_tenant(self, tenant_id: str) -> None:
        """Another tenant's id and nobody's give the same NotFoundError."""
        if self.tenant_id != tenant_id:
            raise NotFoundError

    def need_administrator(self, tenant_id: str) -> None:
        """Passes the platform's administrator and the tenant's own."""
        if not self.is_platform:
            self.need("admin")
            self.need_tenant(tenant_id)

    def owns(self, external_subject_id: str | None) -> bool:
        """Whether a conversation of this subject is the caller's to see."""
        if self.is_dashboard:
            return self.external_subject_id in (None, external_subject_id)
        return self.external_subject_id == external_subject_id
