"""Erasing a person or a whole tenant everywhere: table, bucket, index, stored answers.

Each step may be repeated, so an erasure that was interrupted goes on from the beginning and finds less. One that takes longer than
its function runs on as a job of the queue.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

from tidemark.clock import now
from tidemark.conversations.model import ConversationState
from tidemark.conversations.store import ConversationStore
from tidemark.memory.indexing import Indexing
from tidemark.memory.records import StoredEntity
from tidemark.memory.scope import TENANT, Scope
from tidemark.memory.store import MemoryStore
from tidemark.privacy import operations, traces
from tidemark.privacy.operations import StoredOperation
from tidemark.privacy.people import Person
from tidemark.storage import keys, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.table import Item, StaleError
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import Operation, Receipt, StoredApiKey
from tidemark.tenancy.tenants import TenantService
from tidemark.work import GoOn, WorkQueue

Step = Callable[[], dict[str, int]]


class _OutOfTimeError(Exception):
    """The function ends soon; the rest is for the queue."""


class Erasure:
    def __init__(
        self,
        conversations: ConversationStore,
        memories: MemoryStore,
        indexing: Indexing,
        blobs: Blobs,
        tenants: TenantService,
        queue: WorkQueue,
    ) -> None:
        self._conversations, self._memories, self._indexing = conversations, memories, indexing
        self._blobs, self._tenants, self._queue = blobs, tenants, queue

    # asked for
    def erase_subject(self, caller: Caller, external_subject_id: str, deadline: datetime) -> Operation:
        """Completed when all is gone; running where it takes longer than this call."""
        caller.need("admin")
        audit.record(caller, "subject.erase", f"subjects/{external_subject_id}")
        operation = operations.start("erase_subject", caller.tenant_id, external_subject_id)
        return self.run(operation, deadline).public()

    def erase_tenant(self, caller: Caller, tenant_id: str, deadline: datetime) -> Operation:
        """The tenant is closed at once and then erased. Raises NotFoundError."""
        caller.need_platform()
        self._tenants.close(tenant_id)
        audit.record(caller, "tenant.erase", tenant_id)
        return self.run(operations.start("erase_tenant", tenant_id), deadline).public()

    def resume(self, tenant_id: str, operation_id: str, deadline: datetime) -> None:
        """Goes on with an operation that the queue brings."""
        operation = operations.find(tenant_id, operation_id) or operations.find(None, operation_id)
        if operation is not None and operation.state == "running":
            self.run(operation, deadline)

    def run(self, operation: StoredOperation, deadline: datetime) -> StoredOperation:
        counts = Counter(operation.receipt.counts)
        try:
            for step in self._steps(operation):
                if now() > deadline:
                    raise _OutOfTimeError
                counts.update(step())
        except _OutOfTimeError:
            waiting = operation.model_copy(update={"receipt": Receipt(counts=dict(counts))})
            operations.save(waiting)
            self._queue.send(GoOn(tenant_id=operation.tenant_id, operation_id=operation.id))
            return waiting
        done = operation.model_copy(update={"state": "completed", "completed_at": now(), "receipt": Receipt(counts=dict(counts))})
        operations.save(done)
        return done

    def _steps(self, operation: StoredOperation) -> Iterator[Step]:
        if operation.external_subject_id is not None:
            yield from self._person(Person(operation.tenant_id, operation.external_subject_id))
        else:
            yield from self._tenant(operation.tenant_id)

    # one person
    def _person(self, person: Person) -> Iterator[Step]:
        conversations = list(person.conversations())
        yield lambda: self._shared(person, conversations)  # while it still shows which conversations they came from
        yield lambda: self._unindex(person.tenant_id, person.scope.key)
        for state in conversations:
            yield partial(self._conversation, state)
        yield lambda: self._memory(person.tenant_id, person.scope)
        yield lambda: self._unindex(person.tenant_id, person.scope.key)  # what the stream brought meanwhile

    def _shared(self, person: Person, conversations: list[ConversationState]) -> dict[str, int]:
        mine = {one.id for one in conversations}
        count = 0
        for entity in list(person.shared(self._memories, conversations)):
            others = [source for source in entity.provenance if source.conversation_id not in mine]
            pk = keys.memory(person.tenant_id, entity.scope.key)
            if others:
                item = table.get((pk, f"{keys.ENTITIES}{entity.id}"))
                if item is not None:
                    item.update(actions=[Item.data.set(entity.model_copy(update={"provenance": others}).model_dump_json())])
            else:
                self._memories.erase(person.tenant_id, entity)
                self._indexing.remove({person.tenant_id: [entity.id]})
            table.delete_partition(pk, keys.history(entity.id))  # its former versions may tell what the person said
            count += 1
        return {"shared_memories": count}

    def _conversation(self, state: ConversationState) -> dict[str, int]:
        if state.state == "active":
            try:
                state = self._conversations.update(state, state="deleting", extract_at=None)
            except StaleError:
                fresh = self._conversations.get(state.tenant_id, state.id)
                if fresh is None:
                    return {}
                return self._conversation(fresh)
        answers = self._conversations.delete(state)
        self._indexing.remove_conversation(state.tenant_id, state.id)
        return {"conversations": 1, "messages": state.message_count, "stored_answers": answers}

    def _memory(self, tenant_id: str, scope: Scope) -> dict[str, int]:
        pk = keys.memory(tenant_id, scope.key)
        answers = traces.erase(tenant_id, pk, self._blobs)
        counts = {
            "entities": table.delete_partition(pk, keys.ENTITIES),
            "relations": table.delete_partition(pk, keys.RELATIONS),
            "history": table.delete_partition(pk, keys.HISTORY),
            "stored_answers": answers,
        }
        table.delete_partition(pk)
        return counts

    def _unindex(self, tenant_id: str, scope: str | None) -> dict[str, int]:
        self._indexing.remove_scope(tenant_id, scope)
        return {}

    # a whole tenant
    def _tenant(self, tenant_id: str) -> Iterator[Step]:
        yield lambda: self._unindex(tenant_id, None)
        for item in list(Item.by_tenant.query(keys.conversations(tenant_id))):
            state = item.read(ConversationState)
            yield partial(self._conversation, state)
        for scope in self._scopes(tenant_id):
            yield partial(self._memory, tenant_id, scope)
        yield lambda: self._keys(tenant_id)
        for name, pk in (
            ("agents", keys.agents(tenant_id)),
            ("knowledge_bases", keys.knowledge_bases(tenant_id)),
            ("audit_entries", keys.audit(tenant_id)),
            ("usage_days", keys.usage(tenant_id)),
            ("operations", keys.operations(tenant_id)),
        ):
            yield partial(_counted, name, pk)
        yield lambda: {"objects": self._blobs.delete_prefix(f"{tenant_id}/")}
        yield lambda: self._unindex(tenant_id, None)
        yield lambda: {"tenants": self._tenants.erase(tenant_id)}

    def _scopes(self, tenant_id: str) -> list[Scope]:
        """Every scope in which the tenant may have memory."""
        found: dict[str, Scope] = {TENANT.key: TENANT}
        for item in Item.by_tenant.query(keys.memories(tenant_id)):
            scope = item.read(StoredEntity).scope
            found[scope.key] = scope
        for base in table.query(keys.knowledge_bases(tenant_id)):
            scope = Scope(kind="knowledge_base", knowledge_base_id=base.sk)
            found[scope.key] = scope
        return list(found.values())

    @staticmethod
    def _keys(tenant_id: str) -> dict[str, int]:
        for item in table.query(keys.api_keys(tenant_id)):
            table.delete(keys.api_key_lookup(item.read(StoredApiKey).prefix))
        return {"api_keys": table.delete_partition(keys.api_keys(tenant_id))}


def _counted(name: str, pk: str) -> dict[str, int]:
    return {name: table.delete_partition(pk)}
