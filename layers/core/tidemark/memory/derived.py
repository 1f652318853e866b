"""What a statement left on the persons, places and things that it named, taken back when the statement is deleted.

A name is an entity because statements name it: without any it goes along, and where others name it too, it keeps nothing of the deleted
one's words. What somebody wrote or changed by hand is no longer only a name, and stays as it is.
"""

from collections.abc import Sequence

from tidemark.memory.records import Provenance, StoredEntity, StoredRelation
from tidemark.memory.store import MemoryStore, Writes


def take_back(store: MemoryStore, writes: Writes, gone: StoredEntity) -> None:
    """Adds to the deletion of a statement what becomes of the names that it gave."""
    for name in _given_by(store, writes, gone):
        if not name.alive(writes.at):
            continue
        others = _naming(store, writes, name, gone)
        if others:
            left = _without(name, gone, others)
            if left != name:
                writes.change(name, "updated", provenance=left.provenance, description=left.description)
        else:
            writes.change(name, "deleted", deleted_at=writes.at)
            writes.release_name(name)


def bring_back(store: MemoryStore, writes: Writes, deleted: StoredEntity) -> None:
    """Adds to the restoring of a deleted statement the names that went with it, but for those that somebody else bears by now."""
    for name in _given_by(store, writes, deleted):
        if name.deleted_at is None or name.deleted_at != deleted.deleted_at:
            continue
        holder = store.by_name(writes.tenant_id, writes.scope, name.entity_type, name.name)
        if holder is None or not holder.alive(writes.at):
            writes.change(name, "restored", deleted_at=None)
            writes.claim_name(name)


def _given_by(store: MemoryStore, writes: Writes, statement: StoredEntity) -> list[StoredEntity]:
    brought = [one for one in store.relations_at(writes.tenant_id, writes.scope, statement.id) if one.statement_id == statement.id]
    ids = {id for relation in brought for id in relation.rests_on} - {statement.id}
    return [one for one in store.many(writes.tenant_id, writes.scope, sorted(ids)).values() if one.mention]


def _naming(store: MemoryStore, writes: Writes, name: StoredEntity, gone: StoredEntity) -> list[StoredEntity]:
    """The living that name it: statements, and what was related to it by hand."""

    def by(relation: StoredRelation) -> set[str]:
        return {relation.statement_id} if relation.statement_id else relation.rests_on

    ids = {id for one in store.relations_at(writes.tenant_id, writes.scope, name.id) for id in by(one)} - {name.id, gone.id}
    return [one for one in store.many(writes.tenant_id, writes.scope, sorted(ids)).values() if one.alive(writes.at)]


def _without(name: StoredEntity, gone: StoredEntity, others: Sequence[StoredEntity]) -> StoredEntity:
    """A name without the words of a statement that no other one says."""
    told = [source for one in others for source in one.provenance]
    said = {_words(source) for source in gone.provenance} - {_words(source) for source in told}
    kept = [source for source in name.provenance if _words(source) not in said]
    role = gone.properties.get("role")
    lines = name.description.split("\n")
    if isinstance(role, str) and role not in {one.properties.get("role") for one in others}:
        lines = [line for line in lines if role not in line]
    return name.model_copy(update={"provenance": kept or told[:1], "description": "\n".join(lines)})


def _words(source: Provenance) -> tuple[str | None, ...]:
    return source.conversation_id, source.message_id, source.quote
