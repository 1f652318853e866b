"""Entities, relations and their history: as they are stored, and as they are answered."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import to_json

from tidemark.clock import Time
from tidemark.memory.model import EntityType, Polarity, RelationType, Trust
from tidemark.memory.names import fold
from tidemark.memory.scope import Scope
from tidemark.requests import Body, one_line
from tidemark.tenancy.caller import Actor

RESTORABLE = timedelta(days=30)
PROPERTIES_BYTES, PROPERTIES_DEPTH = 16 * 1024, 16
PROVENANCE_KEPT = 20

HistoryAction = Literal["created", "merged", "updated", "superseded", "restored", "deleted"]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Provenance(Record):
    conversation_id: str | None = None
    message_id: str | None = None
    speaker: str | None = None
    quote: str | None = None
    trust: Trust
    recorded_at: Time


class Whose(Record):
    """Whose fact an entity is: the user's, or another entity's."""

    kind: Literal["user", "entity"]
    entity_id: str | None = None
    name: str | None = None


class Entity(Record):
    id: str
    name: str
    entity_type: EntityType
    description: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)
    aliases: list[str] = Field(default_factory=list)
    scope: Scope
    subject: Whose | None = None
    polarity: Polarity = "positive"
    source_conversation_id: str | None = None
    source_message_id: str | None = None
    provenance: list[Provenance] = Field(default_factory=list)
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    access_count: int = 0
    last_accessed_at: Time | None = None
    version: int = 1
    created_at: Time
    updated_at: Time


class SaidAlong(Record):
    """A statement that an entity says along with its own, as it was made."""

    exclusive: str
    value: str | None
    name: str
    description: str
    properties: dict[str, Any]
    valid_from: Time | None
    provenance: list[Provenance]


class StoredEntity(Entity):
    """An entity with what only the service reads of it."""

    mention: bool = False  # only named by statements: found by search only while one of them holds
    exclusive: str | None = None  # the predicate of which its subject has one value at a time
    value: str | None = None
    favourites: list[SaidAlong] = Field(default_factory=list)  # of a liking: what else the same thing is to its subject
    deleted_at: Time | None = None

    def alive(self, at: datetime, *, include_expired: bool = False) -> bool:
        """Whether any read may show it: neither deleted nor, by the reader's own clock, expired."""
        return self.deleted_at is None and (include_expired or not self.expired(at))

    def expired(self, at: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= at

    def holds(self, at: datetime) -> bool:
        """Whether it is valid at a time: valid_from inclusive, valid_to exclusive, none unbounded."""
        return holds(self.valid_from, self.valid_to, at)

    def public(self) -> Entity:
        return Entity.model_validate(self.model_dump(include=set(Entity.model_fields)))


class Relation(Record):
    id: str
    source_entity_id: str
    target_entity_id: str
    relation_type: RelationType
    description: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)
    scope: Scope
    source_conversation_id: str | None = None
    source_message_id: str | None = None
    provenance: list[Provenance] = Field(default_factory=list)
    valid_from: Time | None = None
    valid_to: Time | None = None
    version: int = 1
    created_at: Time
    updated_at: Time


class StoredRelation(Relation):
    statement_id: str | None = None  # the learned statement whose validity it shares

    @property
    def rests_on(self) -> set[str]:
        """The entities without which it is not seen: its ends, and the statement that brought it."""
        return {self.source_entity_id, self.target_entity_id, self.statement_id or self.source_entity_id}

    def holds(self, at: datetime) -> bool:
        return holds(self.valid_from, self.valid_to, at)

    def public(self) -> Relation:
        return Relation.model_validate(self.model_dump(include=set(Relation.model_fields)))


class Change(Record):
    field: str
    old: Any
    new: Any


class HistoryEntry(Record):
    version: int
    action: HistoryAction
    actor: Actor
    changes: list[Change]
    source_message_id: str | None
    at: Time


class StoredVersion(HistoryEntry):
    """A history entry with the entity as the change left it, so that it can come back."""

    after: StoredEntity

    def public(self) -> HistoryEntry:
        return HistoryEntry.model_validate(self.model_dump(include=set(HistoryEntry.model_fields)))


def holds(valid_from: datetime | None, valid_to: datetime | None, at: datetime) -> bool:
    return (valid_from is None or valid_from <= at) and (valid_to is None or at < valid_to)


CHANGING = ("name", "description", "properties", "aliases", "polarity", "valid_from", "valid_to", "expires_at")


def changes_between(old: Entity | None, new: Entity) -> list[Change]:
    """The fields that a change gave another value."""
    before = old.model_dump(mode="json") if old else {}
    after = new.model_dump(mode="json")
    return [Change(field=field, old=before.get(field), new=after[field]) for field in CHANGING if before.get(field) != after[field]]


def joined(description: str, addition: str) -> str:
    """A description with an addition, which is not said twice."""
    if not addition or addition.strip() in description:
        return description
    return f"{description}\n{addition}" if description else addition


# requests
def _visible(text: str) -> str:
    if not fold(text).strip():
        raise ValueError("a name has at least one visible character")
    return text


def _small(properties: dict[str, Any]) -> dict[str, Any]:
    if depth(properties) > PROPERTIES_DEPTH:
        raise ValueError(f"at most {PROPERTIES_DEPTH} levels are allowed")
    if _json_bytes(properties) > PROPERTIES_BYTES:
        raise ValueError(f"at most {PROPERTIES_BYTES} bytes are allowed")
    return properties


def depth(value: Any) -> int:
    """Levels of nesting, found without recursion: hostile bodies nest deeper than Python does."""
    deepest, level = 0, [value]
    while level := [inner for one in level if isinstance(one, dict | list) for inner in (one.values() if isinstance(one, dict) else one)]:
        deepest += 1
        if deepest > PROPERTIES_DEPTH + 1:
            break
    return deepest


def _json_bytes(value: Any) -> int:
    try:
        return len(to_json(value))  # the encoder that writes answers, so that both agree
    except ValueError as exc:
        raise ValueError("text has to be whole characters") from exc


EntityName = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(one_line), AfterValidator(_visible)]
Description = Annotated[str, StringConstraints(max_length=20_000)]
Properties = Annotated[dict[str, Any], AfterValidator(_small)]
OutsideId = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(one_line)]


class _Dated(Body):
    valid_from: Time | None = None
    valid_to: Time | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "_Dated":
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ValueError("valid_to lies before valid_from")
        return self


class EntityBody(_Dated):
    name: EntityName
    entity_type: EntityType
    description: Description = ""
    properties: Properties = Field(default_factory=dict)
    expires_at: Time | None = None
    source_conversation_id: OutsideId | None = None
    source_message_id: OutsideId | None = None


class EntityPut(_Dated):
    description: Description | None = None
    properties: Properties | None = None
    expires_at: Time | None = None


class RelationBody(_Dated):
    source_entity_id: str
    target_entity_id: str
    relation_type: RelationType
    description: Description = ""
    properties: Properties = Field(default_factory=dict)


class RestoreBody(Body):
    version: int


class BatchDeleteBody(Body):
    ids: list[str] = Field(min_length=1, max_length=100)
    dry_run: bool = False


Said = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]


class RememberBody(Body):
    text: Said
    source_conversation_id: OutsideId | None = None


class ForgetBody(Body):
    query: Said | None = None
    ids: list[str] | None = Field(default=None, min_length=1, max_length=100)
    dry_run: bool = True

    @model_validator(mode="after")
    def _one(self) -> "ForgetBody":
        if (self.query is None) == (self.ids is None):
            raise ValueError("exactly one of query and ids is needed")
        if self.query is not None and not self.query.strip():
            raise ValueError("the query is empty")
        return self


# answers
class EntityView(Record):
    entity: Entity
    outgoing_relations: list[Relation]
    incoming_relations: list[Relation]


class Deleted(Record):
    deleted: int
    relations_deleted: int


class BatchDeleted(Deleted):
    not_found: list[str]


class EntityList(Record):
    items: list[Entity]
    total: int
    page: int
    page_size: int


class ManagedList(Record):
    items: list[Entity]
    total: int
    limit: int
    offset: int


class Graph(Record):
    entities: list[Entity]
    relations: list[Relation]
    truncated: bool


class Remembered(Record):
    entities: list[Entity]
    relations: list[Relation]
    confirmation: str


class Forgotten(Record):
    dry_run: bool
    candidates: list[Entity]
    deleted: int
