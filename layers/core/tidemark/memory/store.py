"""Entities and relations in DynamoDB.

One partition holds a scope: its entities, a claim for each (type, folded name) so that two writers cannot make one name twice, the
relations with a pointer from all that they rest on, and the history. A deleted entity stays unseen for 30 days, so that it can come back
with those of its relations whose other end still lives; a relation is visible exactly while all that it rests on is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from tidemark.clock import iso, now
from tidemark.ids import is_id, new_id
from tidemark.memory.model import EntityType, RelationType
from tidemark.memory.names import fold
from tidemark.memory.records import (
    RESTORABLE,
    HistoryAction,
    StoredEntity,
    StoredRelation,
    StoredVersion,
    changes_between,
)
from tidemark.memory.scope import Scope
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.tenancy.caller import Actor

TRANSACTION_ACTIONS = 100
Also = Callable[[TransactWrite], None]


@dataclass(frozen=True, slots=True)
class View:
    """What a caller may read: one scope, or the tenant's and all subjects' (never a restricted knowledge base's)."""

    tenant_id: str
    scope: Scope | None  # where this caller writes
    whole_tenant: bool = False


def entity_of(item: Item) -> StoredEntity:
    """The entity of an item with the counters that stand beside it."""
    stored = item.read(StoredEntity)
    accessed = datetime.fromisoformat(item.accessed_at) if item.accessed_at else None
    return stored.model_copy(update={"access_count": int(item.access_count or 0), "last_accessed_at": accessed})


class MemoryStore:
    # reading
    def find(self, view: View, entity_id: str) -> StoredEntity | None:
        """An entity that the view covers, deleted and expired ones included."""
        if not is_id(entity_id, "ent"):
            return None
        item = self._item(view, keys.ENTITIES, entity_id)
        return entity_of(item) if item else None

    def _item(self, view: View, prefix: str, id: str) -> Item | None:
        if not view.whole_tenant:
            return table.get((keys.memory(view.tenant_id, view.scope.key), f"{prefix}{id}")) if view.scope else None
        for found in Item.by_owner.query(keys.by_id(view.tenant_id, id), limit=1):
            item = table.get((found.pk, found.sk))  # the index only says where; what it is, the table says
            return item if item is not None and item.gsi2pk else None  # restricted knowledge bases are in no tenant list
        return None

    def many(self, tenant_id: str, scope: Scope, entity_ids: Iterable[str]) -> dict[str, StoredEntity]:
        pk = keys.memory(tenant_id, scope.key)
        found = table.get_many([(pk, f"{keys.ENTITIES}{id}") for id in dict.fromkeys(entity_ids)])
        return {entity.id: entity for entity in map(entity_of, found)}

    def entities(self, view: View, at: datetime, *, include_expired: bool = False) -> Iterator[StoredEntity]:
        """The living entities of a view, oldest first."""
        if view.whole_tenant:
            items: Iterable[Item] = Item.by_tenant.query(keys.memories(view.tenant_id))
        elif view.scope:
            items = table.query(keys.memory(view.tenant_id, view.scope.key), keys.ENTITIES)
        else:
            return
        for entity in map(entity_of, items):
            if entity.alive(at, include_expired=include_expired):
                yield entity

    def by_name(self, tenant_id: str, scope: Scope, entity_type: EntityType, name: str) -> StoredEntity | None:
        pk = keys.memory(tenant_id, scope.key)
        claim = table.get((pk, keys.name_claim(entity_type, fold(name))))
        item = table.get((pk, f"{keys.ENTITIES}{claim.data}")) if claim else None
        return entity_of(item) if item else None

    def exclusive(self, tenant_id: str, scope: Scope, subject: str, predicate: str) -> tuple[str | None, StoredEntity | None]:
        """The id that the pointer of a subject and a predicate with one value at a time names, and that statement where it is there."""
        pk = keys.memory(tenant_id, scope.key)
        pointer = table.get((pk, exclusive_key(subject, predicate)))
        item = table.get((pk, f"{keys.ENTITIES}{pointer.data}")) if pointer else None
        return pointer.data if pointer else None, entity_of(item) if item else None

    def exclusives(self, tenant_id: str, scope: Scope, subject: str, predicates: Sequence[str]) -> list[StoredEntity]:
        """The statements that now hold of a subject for several predicates, in their order, in two reads."""
        pk = keys.memory(tenant_id, scope.key)
        places = [exclusive_key(subject, predicate) for predicate in predicates]
        pointers = {pointer.sk: pointer.data for pointer in table.get_many([(pk, place) for place in places])}
        found = self.many(tenant_id, scope, pointers.values())
        return [found[pointers[place]] for place in places if pointers.get(place) in found]

    def find_relation(self, view: View, relation_id: str) -> StoredRelation | None:
        item = self._item(view, keys.RELATIONS, relation_id) if is_id(relation_id, "rel") else None
        return item.read(StoredRelation) if item else None

    def same_relation(self, tenant_id: str, scope: Scope, source: str, target: str, kind: RelationType) -> StoredRelation | None:
        pk = keys.memory(tenant_id, scope.key)
        claim = table.get((pk, keys.edge_claim(source, target, kind)))
        return table.read((pk, f"{keys.RELATIONS}{claim.data}"), StoredRelation) if claim else None

    def relations(self, view: View) -> Iterator[StoredRelation]:
        """All relations of a view, whether their ends live or not, oldest first."""
        if view.whole_tenant:
            items: Iterable[Item] = Item.by_tenant.query(f"{keys.memories(view.tenant_id)}#{keys.RELATIONS}")
        elif view.scope:
            items = table.query(keys.memory(view.tenant_id, view.scope.key), keys.RELATIONS)
        else:
            return
        for item in items:
            yield item.read(StoredRelation)

    def relations_at(self, tenant_id: str, scope: Scope, entity_id: str) -> list[StoredRelation]:
        """Relations that rest on an entity, as either end or as the statement that brought them, whether the rest lives or not."""
        pk = keys.memory(tenant_id, scope.key)
        pointers = [pointer.sk.rpartition("#")[2] for pointer in table.query(pk, keys.edge(entity_id))]
        found = table.get_many([(pk, f"{keys.RELATIONS}{id}") for id in pointers])
        return sorted((item.read(StoredRelation) for item in found), key=lambda relation: relation.id)

    def visible(self, tenant_id: str, scope: Scope, relations: Sequence[StoredRelation], at: datetime) -> list[StoredRelation]:
        """Those of the relations of which all that they rest on lives."""
        needed = {id for one in relations for id in one.rests_on}
        living = {id for id, entity in self.many(tenant_id, scope, needed).items() if entity.alive(at)}
        return [one for one in relations if one.rests_on <= living]

    def history(self, tenant_id: str, scope: Scope, entity_id: str) -> list[StoredVersion]:
        """Oldest first."""
        pk = keys.memory(tenant_id, scope.key)
        return [item.read(StoredVersion) for item in table.query(pk, keys.history(entity_id))]

    def erase(self, tenant_id: str, entity: StoredEntity) -> None:
        """Takes an entity away with its relations and history, beyond restoring; safe to repeat."""
        pk = keys.memory(tenant_id, entity.scope.key)
        self.erase_past(tenant_id, entity)
        table.delete((pk, keys.name_claim(entity.entity_type, fold(entity.name))))
        table.delete((pk, f"{keys.ENTITIES}{entity.id}"))

    def erase_past(self, tenant_id: str, entity: StoredEntity) -> None:
        """What an entity leaves that is gone itself: its relations and history."""
        for relation in self.relations_at(tenant_id, entity.scope, entity.id):
            writes = Writes(tenant_id, entity.scope, Actor(kind="erasure", id=entity.id))
            writes.remove_relation(relation)
            writes.commit()
        table.delete_partition(keys.memory(tenant_id, entity.scope.key), keys.history(entity.id))

    def forgotten(self, tenant_id: str, scope_key: str, message_ids: Iterable[str]) -> set[str]:
        """Those of the messages from which a deleted memory came."""
        pk = keys.memory(tenant_id, scope_key)
        found = table.get_many([(pk, keys.forgotten(id)) for id in message_ids])
        return {item.sk.removeprefix(keys.FORGOTTEN) for item in found}

    # counting
    def count_access(self, tenant_id: str, entities: Sequence[StoredEntity], at: datetime) -> None:
        """One access more for each; best effort, in one request, and no new version."""
        with table.transaction() as write:
            for entity in entities[:TRANSACTION_ACTIONS]:
                write.update(
                    Item(keys.memory(tenant_id, entity.scope.key), f"{keys.ENTITIES}{entity.id}"),
                    actions=[Item.access_count.add(1), Item.accessed_at.set(iso(at))],
                    condition=Item.pk.exists(),
                )


def exclusive_key(subject: str, predicate: str) -> str:
    return f"{keys.EXCLUSIVE}{keys.digest(subject, predicate)}"


@dataclass
class Writes:
    """A change of one scope, gathered and then done as one transaction."""

    tenant_id: str
    scope: Scope
    actor: Actor
    at: datetime = field(default_factory=now)
    entities: dict[str, StoredEntity] = field(default_factory=dict)  # as they will be
    relations: dict[str, StoredRelation] = field(default_factory=dict)
    _saves: list[tuple[Item, Condition | None]] = field(default_factory=list)
    _updates: list[tuple[Item, list[Action], Condition | None]] = field(default_factory=list)
    _deletes: list[Item] = field(default_factory=list)

    @property
    def _pk(self) -> str:
        return keys.memory(self.tenant_id, self.scope.key)

    @property
    def empty(self) -> bool:
        return not (self._saves or self._updates or self._deletes)

    def create(self, entity: StoredEntity) -> StoredEntity:
        """A new entity that takes its name."""
        made = entity.model_copy(
            update={"id": new_id("ent"), "scope": self.scope, "created_at": self.at, "updated_at": self.at, "version": 1}
        )
        item = table.item((self._pk, f"{keys.ENTITIES}{made.id}"), made, kind="entity", version=1, **self._places(made))
        self._saves.append((item, Item.pk.does_not_exist()))
        self.claim_name(made)
        self._record(None, made, "created")
        self.entities[made.id] = made
        return made

    def change(self, old: StoredEntity, action: HistoryAction, **changes: object) -> StoredEntity:
        """The next version of an entity; one change of it a transaction."""
        changed = old.model_copy(update={**changes, "version": old.version + 1, "updated_at": self.at})
        actions: list[Action] = [
            Item.data.set(changed.model_dump_json(exclude={"access_count", "last_accessed_at"})),
            Item.version.set(changed.version),
        ]
        expiry = _ttl(changed)
        actions.append(Item.ttl.set(expiry) if expiry else Item.ttl.remove())
        if changed.deleted_at is None and self.scope.kind != "knowledge_base":
            actions += [Item.gsi2pk.set(keys.memories(self.tenant_id)), Item.gsi2sk.set(f"{iso(changed.created_at)}#{changed.id}")]
        self._updates.append((Item(self._pk, f"{keys.ENTITIES}{old.id}"), actions, Item.version == old.version))
        self._record(old, changed, action)
        self.entities[changed.id] = changed
        return changed

    def forget_sources(self, entity: StoredEntity) -> None:
        """What was deleted is not recalled from the words that it was learned from either."""
        for id in {source.message_id for source in entity.provenance if source.message_id}:
            self._saves.append((Item(self._pk, keys.forgotten(id)), None))

    def recall_sources(self, entity: StoredEntity) -> None:
        for id in {source.message_id for source in entity.provenance if source.message_id}:
            self._deletes.append(Item(self._pk, keys.forgotten(id)))

    def release_name(self, entity: StoredEntity) -> None:
        self._deletes.append(Item(self._pk, keys.name_claim(entity.entity_type, fold(entity.name))))

    def claim_name(self, entity: StoredEntity) -> None:
        claim = Item(self._pk, keys.name_claim(entity.entity_type, fold(entity.name)), data=entity.id)
        self._saves.append((claim, Item.pk.does_not_exist() | (Item.data == entity.id)))

    def point_exclusive(self, subject: str, predicate: str, entity_id: str, seen: str | None) -> None:
        """`seen` is the pointer as it was read: of two first statements at once, the second one has to see and close the other."""
        unmoved = Item.data == seen if seen else Item.pk.does_not_exist()
        self._saves.append((Item(self._pk, exclusive_key(subject, predicate), data=entity_id), unmoved))

    def relate(self, relation: StoredRelation) -> StoredRelation:
        """A new relation between two living entities of this scope."""
        made = relation.model_copy(
            update={"id": new_id("rel"), "scope": self.scope, "created_at": self.at, "updated_at": self.at, "version": 1}
        )
        self._save_relation(made, Item.pk.does_not_exist())
        self._saves.append(
            (Item(self._pk, keys.edge_claim(made.source_entity_id, made.target_entity_id, made.relation_type), data=made.id), None)
        )
        self._saves += [(Item(self._pk, keys.edge(id, made.id)), None) for id in made.rests_on]
        return made

    def change_relation(self, old: StoredRelation, **changes: object) -> StoredRelation:
        changed = old.model_copy(update={**changes, "version": old.version + 1, "updated_at": self.at})
        self._save_relation(changed, Item.version == old.version)
        self._saves += [(Item(self._pk, keys.edge(id, old.id)), None) for id in changed.rests_on - old.rests_on]
        self._deletes += [Item(self._pk, keys.edge(id, old.id)) for id in old.rests_on - changed.rests_on]
        return changed

    def _save_relation(self, relation: StoredRelation, condition: Condition) -> None:
        places = {"gsi1pk": keys.by_id(self.tenant_id, relation.id), "gsi1sk": "r"}
        if self.scope.kind != "knowledge_base":
            places |= {"gsi2pk": f"{keys.memories(self.tenant_id)}#{keys.RELATIONS}", "gsi2sk": relation.id}
        item = table.item((self._pk, f"{keys.RELATIONS}{relation.id}"), relation, kind="relation", version=relation.version, **places)
        self._saves.append((item, condition))
        self.relations[relation.id] = relation

    def remove_relation(self, relation: StoredRelation) -> None:
        self._deletes.append(Item(self._pk, f"{keys.RELATIONS}{relation.id}"))
        self._deletes.append(Item(self._pk, keys.edge_claim(relation.source_entity_id, relation.target_entity_id, relation.relation_type)))
        self._deletes += [Item(self._pk, keys.edge(id, relation.id)) for id in relation.rests_on]

    def _places(self, entity: StoredEntity) -> dict[str, object]:
        places: dict[str, object] = {"gsi1pk": keys.by_id(self.tenant_id, entity.id), "gsi1sk": "e", "ttl": _ttl(entity)}
        if self.scope.kind != "knowledge_base":
            places |= {"gsi2pk": keys.memories(self.tenant_id), "gsi2sk": f"{iso(entity.created_at)}#{entity.id}"}
        return places

    def _record(self, old: StoredEntity | None, new: StoredEntity, action: HistoryAction) -> None:
        source = new.provenance[-1].message_id if new.provenance else None
        version = StoredVersion(
            version=new.version,
            action=action,
            actor=self.actor,
            changes=changes_between(old, new),
            source_message_id=source,
            at=self.at,
            after=new,
        )
        self._saves.append((table.item((self._pk, keys.history(new.id, new.version)), version, kind="history"), None))

    def commit(self, also: Also | None = None) -> None:
        """All or nothing. Raises StaleError when somebody else changed one of the entities first."""
        if self.empty and also is None:
            return
        with table.transaction() as write:
            for item, condition in self._saves:
                write.save(item, condition=condition)
            for item, actions, condition in self._updates:
                write.update(item, actions=actions, condition=condition)
            for item in self._deletes:
                write.delete(item)
            if also is not None:
                also(write)


def _ttl(entity: StoredEntity) -> int | None:
    """When DynamoDB may drop the item: 30 days after its end, until which it can be brought back. Reads go by the clock."""
    ends = entity.deleted_at or entity.expires_at
    return int(ends.timestamp() + RESTORABLE.total_seconds()) if ends else None  # in seconds: a date ends with the year 9999
