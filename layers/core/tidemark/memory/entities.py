"""What people and applications do with single memories: write, read, change, delete, bring back."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from tidemark.clock import now
from tidemark.errors import ConflictError, InvalidError, NotFoundError
from tidemark.etags import check
from tidemark.memory import derived
from tidemark.memory.access import MemoryAccess
from tidemark.memory.graph import Bounds, Edges, walk
from tidemark.memory.model import EntityType, RelationType
from tidemark.memory.names import fold
from tidemark.memory.records import (
    PROVENANCE_KEPT,
    BatchDeleteBody,
    BatchDeleted,
    Deleted,
    EntityBody,
    EntityPut,
    EntityView,
    Graph,
    HistoryEntry,
    Provenance,
    RelationBody,
    StoredEntity,
    StoredRelation,
    joined,
)
from tidemark.memory.scope import Scope
from tidemark.memory.secrets import redact, redact_description, redact_properties
from tidemark.memory.store import MemoryStore, View, Writes
from tidemark.storage import table
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Actor, Caller

T = TypeVar("T")
ATTEMPTS = 8


NeedSource = Callable[[Caller, str | None, str | None], None]  # raises where conversation and message are not the caller's


def retried(attempt: Callable[[], T]) -> T:
    """A change of memory, done again from what the other writer left. Raises ConflictError."""
    return table.retried(attempt, "Somebody else is changing the same memory.", ATTEMPTS)


def entity_tag(entity: StoredEntity) -> str:
    return f'"{entity.version}"'


class EntityService:
    def __init__(self, store: MemoryStore, access: MemoryAccess, need_source: NeedSource) -> None:
        self._store, self._access, self._need_source = store, access, need_source

    # one entity
    def upsert(self, caller: Caller, body: EntityBody) -> tuple[StoredEntity, bool]:
        """Creates or merges by (scope, folded name, type); the second value says whether it is new."""
        scope = self._access.scope(caller)
        self._need_source(caller, body.source_conversation_id, body.source_message_id)
        return retried(lambda: self._upsert(caller, scope, body))

    def _upsert(self, caller: Caller, scope: Scope, body: EntityBody) -> tuple[StoredEntity, bool]:
        writes = Writes(caller.tenant_id, scope, caller.actor)
        name = redact(body.name.strip())[0][:255]
        description, properties = redact_description(name, body.description)[0], redact_properties(body.properties)
        source = Provenance(
            trust=caller.trust,
            recorded_at=writes.at,
            conversation_id=body.source_conversation_id,
            message_id=body.source_message_id,
        )
        known = self._store.by_name(caller.tenant_id, scope, body.entity_type, name)
        if known is None or not known.alive(writes.at):
            if known is not None:
                writes.change(known, "deleted", deleted_at=writes.at)  # an expired one that still held the name
                writes.release_name(known)
                writes.commit()
                return self._upsert(caller, scope, body)
            fresh = StoredEntity(
                id="",
                scope=scope,
                created_at=writes.at,
                updated_at=writes.at,
                provenance=[source],
                **{**body.model_dump(), "name": name, "description": description, "properties": properties},
            )
            made = writes.create(fresh)
            writes.commit()
            usage.add(caller.tenant_id, memories=1)
            return made, True
        given = body.model_dump(exclude_unset=True, include={"valid_from", "valid_to", "expires_at"})
        merged_entity = writes.change(
            known,
            "merged",
            description=redact_description(name, joined(known.description, description))[0],
            properties={**known.properties, **properties},
            aliases=known.aliases if name in (known.name, *known.aliases) else [*known.aliases, name],
            provenance=[*known.provenance, source][-PROVENANCE_KEPT:],
            mention=False,
            **given,
        )
        writes.commit()
        return merged_entity, False

    def find(self, caller: Caller, entity_id: str, *, include_expired: bool = False) -> tuple[View, StoredEntity]:
        """Raises NotFoundError for what is missing, foreign, deleted or expired."""
        view = self._access.view(caller)
        entity = self._store.find(view, entity_id)
        if entity is None or not entity.alive(now(), include_expired=include_expired and caller.is_admin):
            raise NotFoundError
        return view, entity

    def get(
        self, caller: Caller, entity_id: str, *, include_expired: bool = False, as_of: datetime | None = None
    ) -> tuple[EntityView, str]:
        """The entity with its visible relations, and its ETag. With `as_of` only the relations that hold at that time.

        Raises NotFoundError, with `as_of` also where the entity did not hold then.
        """
        _, entity = self.find(caller, entity_id, include_expired=include_expired)
        around = self._store.visible(
            caller.tenant_id, entity.scope, self._store.relations_at(caller.tenant_id, entity.scope, entity_id), now()
        )
        if as_of is not None:
            if not entity.holds(as_of):
                raise NotFoundError
            around = [one for one in around if one.holds(as_of)]
        view = EntityView(
            entity=entity.public(),
            outgoing_relations=[one.public() for one in around if one.source_entity_id == entity_id],
            incoming_relations=[one.public() for one in around if one.target_entity_id == entity_id],
        )
        return view, entity_tag(entity)

    def put(self, caller: Caller, entity_id: str, body: EntityPut, if_match: str | None) -> StoredEntity:
        self._access.scope(caller)

        def attempt() -> StoredEntity:
            _, entity = self.find(caller, entity_id, include_expired=True)
            check(if_match, entity_tag(entity))
            given = body.model_dump(exclude_unset=True)
            if "properties" in given:
                given["properties"] = {**entity.properties, **redact_properties(given["properties"] or {})}
            if "description" in given:
                given["description"] = redact_description(entity.name, given["description"] or "")[0]
            changed = entity.model_copy(update=given)
            if changed.valid_from and changed.valid_to and changed.valid_to < changed.valid_from:
                raise InvalidError.field("/valid_to", "valid_to lies before valid_from")
            writes = Writes(caller.tenant_id, entity.scope, caller.actor)
            result = writes.change(entity, "updated", **{**given, "mention": False})
            writes.commit()
            return result

        return retried(attempt)

    def delete(self, caller: Caller, entity_id: str, if_match: str | None) -> Deleted:
        self._access.scope(caller)
        return retried(lambda: self._delete(caller, entity_id, if_match))

    def _delete(self, caller: Caller, entity_id: str, if_match: str | None) -> Deleted:
        _, entity = self.find(caller, entity_id)
        check(if_match, entity_tag(entity))
        counts = self.remove(caller.tenant_id, caller.actor, [entity], dry_run=True)
        self._take_away(caller.tenant_id, caller.actor, entity)
        return counts

    def remove(self, tenant_id: str, actor: Actor, entities: Sequence[StoredEntity], *, dry_run: bool = False) -> Deleted:
        """Deletes entities with their relations and with what was derived from them, counting each relation once."""
        relations: set[str] = set()
        for entity in entities:
            around = self._store.relations_at(tenant_id, entity.scope, entity.id)
            relations |= {one.id for one in self._store.visible(tenant_id, entity.scope, around, now())}
        for entity in entities if not dry_run else ():
            retried(partial(self._take_away_now, tenant_id, actor, entity))
        return Deleted(deleted=len(entities), relations_deleted=len(relations))

    def _take_away_now(self, tenant_id: str, actor: Actor, entity: StoredEntity) -> None:
        """Deletes an entity as it is by now."""
        for fresh in self._store.many(tenant_id, entity.scope, [entity.id]).values():
            if fresh.deleted_at is None:
                self._take_away(tenant_id, actor, fresh)

    def _take_away(self, tenant_id: str, actor: Actor, entity: StoredEntity) -> None:
        writes = Writes(tenant_id, entity.scope, actor)
        writes.change(entity, "deleted", deleted_at=writes.at)
        writes.release_name(entity)
        writes.forget_sources(entity)
        derived.take_back(self._store, writes, entity)
        writes.commit()

    def batch_delete(self, caller: Caller, body: BatchDeleteBody) -> BatchDeleted:
        self._access.scope(caller)
        found = self.living(self._access.view(caller), body.ids)
        known = {entity.id for entity in found}
        done = self.remove(caller.tenant_id, caller.actor, found, dry_run=body.dry_run)
        return BatchDeleted(**done.model_dump(), not_found=[id for id in dict.fromkeys(body.ids) if id not in known])

    def living(self, view: View, ids: Iterable[str]) -> list[StoredEntity]:
        """Those of the ids that a view shows, each once, in their order."""
        at = now()
        return [entity for id in dict.fromkeys(ids) if (entity := self._store.find(view, id)) is not None and entity.alive(at)]

    # history
    def history(self, caller: Caller, entity_id: str) -> list[HistoryEntry]:
        """Every change of a living or deleted entity, oldest first. Raises NotFoundError, also for an expired one."""
        entity = self._remembered(caller, entity_id)
        told = self._store.history(caller.tenant_id, entity.scope, entity_id)
        return [one.public() for one in told]

    def _remembered(self, caller: Caller, entity_id: str) -> StoredEntity:
        """An entity whose past may be told: a deletion can be taken back, the end of `expires_at` cannot."""
        entity = self._store.find(self._access.view(caller), entity_id)
        if entity is None or (entity.expired(now()) and not caller.is_admin):
            raise NotFoundError
        return entity

    def restore(self, caller: Caller, entity_id: str, version: int) -> StoredEntity:
        """An earlier version as the newest one. Raises InvalidError for a version that never was, ConflictError for a taken name."""
        self._access.scope(caller)

        def attempt() -> StoredEntity:
            entity = self._remembered(caller, entity_id)
            told = self._store.history(caller.tenant_id, entity.scope, entity_id)
            former = next((one.after for one in told if one.version == version), None)
            if former is None:
                raise InvalidError.field("/version", "There is no such version.", code="version_not_found")
            return self._bring_back(caller, entity, former)

        return retried(attempt)

    def _bring_back(self, caller: Caller, entity: StoredEntity, former: StoredEntity) -> StoredEntity:
        writes = Writes(caller.tenant_id, entity.scope, caller.actor)
        if entity.deleted_at is not None:
            holder = self._store.by_name(caller.tenant_id, entity.scope, entity.entity_type, entity.name)
            if holder is not None and holder.id != entity.id and holder.alive(writes.at):
                raise ConflictError("Another memory has taken this name since.", code="name_taken")
        kept = {"access_count", "last_accessed_at", "version", "created_at", "updated_at", "provenance", "id", "scope"}
        fields = {name: getattr(former, name) for name in StoredEntity.model_fields if name not in kept}
        reopened = writes.change(entity, "restored", **{**fields, "deleted_at": None})
        writes.claim_name(reopened)
        if entity.deleted_at is not None:
            writes.recall_sources(entity)
            derived.bring_back(self._store, writes, entity)
        for relation in self._store.relations_at(caller.tenant_id, entity.scope, entity.id):
            if relation.statement_id == entity.id and relation.valid_to != former.valid_to:
                writes.change_relation(relation, valid_to=former.valid_to)
        writes.commit()
        return reopened

    # lists
    def found(
        self,
        caller: Caller,
        *,
        types: Sequence[EntityType] = (),
        q: str | None = None,
        include_expired: bool = False,
    ) -> list[StoredEntity]:
        """The whole filtered list, newest first. `q` is a literal part of name or description, after folding."""
        return self.listed(self._access.view(caller), types=types, q=q, include_expired=include_expired and caller.is_admin)

    def listed(
        self, view: View, *, types: Sequence[EntityType] = (), q: str | None = None, include_expired: bool = False
    ) -> list[StoredEntity]:
        needle = fold(q) if q is not None else ""
        found = [
            entity
            for entity in self._store.entities(view, now(), include_expired=include_expired)
            if (not types or entity.entity_type in types) and (q is None or _says(entity, q, needle))
        ]
        return found[::-1]

    # relations
    def relate(self, caller: Caller, body: RelationBody) -> tuple[StoredRelation, bool]:
        """A new relation, or the stored one; the second value says whether it is new."""
        self._access.scope(caller)
        return retried(lambda: self._relate(caller, body))

    def _relate(self, caller: Caller, body: RelationBody) -> tuple[StoredRelation, bool]:
        ends = self._ends(caller, body)
        known = self._store.same_relation(caller.tenant_id, ends, body.source_entity_id, body.target_entity_id, body.relation_type)
        if known is not None:
            return known, False
        writes = Writes(caller.tenant_id, ends, caller.actor)
        source = Provenance(trust=caller.trust, recorded_at=writes.at)
        safe = {"description": redact(body.description)[0], "properties": redact_properties(body.properties)}
        fields = {**body.model_dump(), **safe}
        draft = StoredRelation(id="", scope=ends, created_at=writes.at, updated_at=writes.at, provenance=[source], **fields)
        made = writes.relate(draft)
        writes.commit()
        return made, True

    def _ends(self, caller: Caller, body: RelationBody) -> Scope:
        """The one scope in which both ends live; a missing and a foreign end are refused alike."""
        view, at = self._access.view(caller), now()
        scopes: list[Scope] = []
        for field in ("source_entity_id", "target_entity_id"):
            entity = self._store.find(view, getattr(body, field))
            if entity is None or not entity.alive(at) or (scopes and entity.scope != scopes[0]):
                raise InvalidError.field(f"/{field}", "There is no such entity in this scope.", code="entity_not_found")
            scopes.append(entity.scope)
        return scopes[0]

    def relations(self, caller: Caller, *, entity_id: str | None, relation_type: RelationType | None) -> list[StoredRelation]:
        """The visible relations of the caller's view, oldest first."""
        view = self._access.view(caller)
        living = {entity.id for entity in self._store.entities(view, now())}
        return [
            one
            for one in self._store.relations(view)
            if one.rests_on <= living
            and (relation_type is None or one.relation_type == relation_type)
            and (entity_id is None or entity_id in (one.source_entity_id, one.target_entity_id))
        ]

    def unrelate(self, caller: Caller, relation_id: str) -> Deleted:
        self._access.scope(caller)
        relation = self._store.find_relation(self._access.view(caller), relation_id)
        if relation is None or not self._store.visible(caller.tenant_id, relation.scope, [relation], now()):
            raise NotFoundError
        writes = Writes(caller.tenant_id, relation.scope, caller.actor)
        writes.remove_relation(relation)
        writes.commit()
        return Deleted(deleted=0, relations_deleted=1)

    # graph
    def graph(self, view: View, seeds: Sequence[str], bounds: Bounds) -> Graph:
        """The part of the graph around the seeds, or without seeds all of it within the caps. Raises NotFoundError for a foreign seed."""
        at = now()
        entities = {entity.id: entity for entity in self._store.entities(view, at)}
        if any(seed not in entities for seed in seeds):
            raise NotFoundError
        return walk(list(dict.fromkeys(seeds)), entities, Edges(self._store.relations(view)), bounds, bounds.as_of or at)


def _says(entity: StoredEntity, literal: str, needle: str) -> bool:
    """Whether name, alias or description have the words; an emoji, which folding drops, is looked for as it was written."""
    texts = (entity.name, *entity.aliases, entity.description)
    if any(literal.casefold() in text.casefold() for text in texts):
        return True
    return bool(needle) and any(needle in fold(text) for text in texts)
