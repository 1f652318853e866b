"""Erasing a person or a whole tenant everywhere: table, bucket, index, stored answers.

Each step may be repeated, so an erasure that was interrupted goes on from the beginning and finds less. One that takes longer than
its function runs on as a job of the queue; a message that waits there from the beginning goes on with one whose worker died.
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
from tidemark.storage import keys, leases, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.table import Item, StaleError
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import Operation, Receipt, StoredApiKey
from tidemark.tenancy.registry import KnowledgeBases
from tidemark.tenancy.tenants import TenantService
from tidemark.work import GoOn, WorkQueue

Step = Callable[[], dict[str, int]]


STALE_ATTEMPTS = 5
TAKEN_UP_AFTER = 150  # seconds: longer than any function that may be at work on it
BUSY_FOR = 10  # seconds that an erasure waits for whoever still learns from a conversation


class _LaterError(Exception):
    """The rest is for the queue: the function ends soon, or somebody has to finish first."""

    def __init__(self, delay_seconds: int = 0) -> None:
        super().__init__(delay_seconds)
        self.delay_seconds = delay_seconds


class Erasure:
    def __init__(
        self,
        conversations: ConversationStore,
        memories: MemoryStore,
        indexing: Indexing,
        blobs: Blobs,
        tenants: TenantService,
        bases: KnowledgeBases,
        queue: WorkQueue,
    ) -> None:
        self._conversations, self._memories, self._indexing = conversations, memories, indexing
        self._blobs, self._tenants, self._bases, self._queue = blobs, tenants, bases, queue

    # asked for
    def erase_subject(self, caller: Caller, external_subject_id: str, deadline: datetime) -> Operation:
        """Completed when all is gone; running where it takes longer than this call."""
        caller.need("admin")
        audit.record(caller, "subject.erase", f"subjects/{external_subject_id}")
        operation = operations.new("erase_subject", caller.tenant_id, external_subject_id=external_subject_id)
        return self._begun(operation, deadline)

    def erase_base(self, caller: Caller, base_id: str, if_match: str | None, deadline: datetime) -> None:
        """Deletes a knowledge base with the memory that was its own. Raises NotFoundError and PreconditionFailedError."""
        self._bases.check(caller, base_id, if_match)
        operation = self._kept(operations.new("erase_knowledge_base", caller.tenant_id, knowledge_base_id=base_id))
        self._bases.delete(caller, base_id, None)
        self.run(operation, deadline)

    def erase_tenant(self, caller: Caller, tenant_id: str, deadline: datetime) -> Operation:
        """The tenant is closed at once and then erased. Raises NotFoundError."""
        caller.need_platform()
        self._tenants.close(tenant_id)
        audit.record(caller, "tenant.erase", tenant_id)
        return self._begun(operations.new("erase_tenant", tenant_id), deadline)

    def _begun(self, operation: StoredOperation, deadline: datetime) -> Operation:
        return self.run(self._kept(operation), deadline).public()

    def _kept(self, operation: StoredOperation) -> StoredOperation:
        """From here on the operation ends, whoever dies: the message that takes it up again is there before it is."""
        self._queue.send(GoOn(tenant_id=operation.tenant_id, operation_id=operation.id), TAKEN_UP_AFTER)
        operations.save(operation)
        return operation

    def resume(self, tenant_id: str, operation_id: str, deadline: datetime) -> None:
        """Goes on with an operation that the queue brings."""
        operation = operations.find(tenant_id, operation_id) or operations.find(None, operation_id)
        if operation is not None and operation.state == "running":
            self.run(operation, deadline)

    def run(self, operation: StoredOperation, deadline: datetime) -> StoredOperation:
        try:
            for step in self._steps(operation):
                if now() > deadline:
                    raise _LaterError
                found = Counter(table.retried(step, "Somebody else is changing what is to be erased.", STALE_ATTEMPTS))
                if found.total():
                    operation = _noted(operation, found)
        except _LaterError as later:
            self._queue.send(GoOn(tenant_id=operation.tenant_id, operation_id=operation.id), later.delay_seconds)
            return operation
        done = operation.model_copy(update={"state": "completed", "completed_at": now()})
        operations.save(done)
        return done

    def _steps(self, operation: StoredOperation) -> Iterator[Step]:
        if operation.external_subject_id is not None:
            yield from self._person(Person(operation.tenant_id, operation.external_subject_id))
        elif operation.knowledge_base_id is not None:
            yield from self._base(operation.tenant_id, operation.knowledge_base_id)
        else:
            yield from self._tenant(operation.tenant_id)

    def _base(self, tenant_id: str, base_id: str) -> Iterator[Step]:
        scope = Scope(kind="knowledge_base", knowledge_base_id=base_id)
        yield lambda: self._memory(tenant_id, scope)
        yield lambda: self._unindex(tenant_id, scope.key)

    # one person
    def _person(self, person: Person) -> Iterator[Step]:
        conversations = list(person.conversations())
        for state in conversations:
            yield partial(self._closed, state)
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
                    kept = entity.model_copy(update={"provenance": others})
                    table.update(item, [Item.data.set(kept.model_dump_json())], Item.version == entity.version)
            else:
                self._memories.erase(person.tenant_id, entity)
                self._indexing.remove({person.tenant_id: [entity.id]})
            table.delete_partition(pk, keys.history(entity.id))  # its former versions may tell what the person said
            count += 1
        return {"shared_memories": count}

    def _close(self, state: ConversationState) -> ConversationState | None:
        """From now on nobody says or learns anything in it. None where it is gone.

        Raises _LaterError while somebody still learns from it: what that leaves has to go too.
        """
        if state.state == "active":
            try:
                state = self._conversations.update(state, state="deleting", extract_at=None)
            except StaleError:
                fresh = self._conversations.get(state.tenant_id, state.id)
                return None if fresh is None else self._close(fresh)
        if leases.held(keys.extraction_lease(state.tenant_id, state.id)):
            raise _LaterError(BUSY_FOR)
        return state

    def _closed(self, state: ConversationState) -> dict[str, int]:
        self._close(state)
        return {}

    def _conversation(self, state: ConversationState) -> dict[str, int]:
        closed = self._close(state)
        if closed is None:
            return {}
        answers = self._conversations.delete(closed)
        self._indexing.remove_conversation(closed.tenant_id, closed.id)
        return {"conversations": 1, "messages": closed.message_count, "stored_answers": answers}

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
        conversations = [item.read(ConversationState) for item in Item.by_tenant.query(keys.conversations(tenant_id))]
        scopes = self._scopes(tenant_id, {one.external_subject_id for one in conversations if one.external_subject_id is not None})
        for state in conversations:
            yield partial(self._closed, state)
        for scope in scopes:  # before the conversations go, which tell of them
            yield partial(self._memory, tenant_id, scope)
        for state in conversations:
            yield partial(self._conversation, state)
        yield lambda: self._keys(tenant_id)
        yield lambda: {"stored_answers": traces.erase(tenant_id, keys.answers(tenant_id), self._blobs)}
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

    def _scopes(self, tenant_id: str, subjects: set[str]) -> list[Scope]:
        """Every scope in which the tenant may have memory, or traces of it."""
        found: dict[str, Scope] = {TENANT.key: TENANT}
        for item in Item.by_tenant.query(keys.memories(tenant_id)):
            scope = item.read(StoredEntity).scope
            found[scope.key] = scope
        for subject in subjects:
            scope = Scope(kind="subject", external_subject_id=subject)
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


def _noted(operation: StoredOperation, found: Counter[str]) -> StoredOperation:
    """The operation with what a step did in its receipt, stored: who takes it up again counts on."""
    told = operation.model_copy(update={"receipt": Receipt(counts=dict(Counter(operation.receipt.counts) + found))})
    operations.save(told)
    return told


def _counted(name: str, pk: str) -> dict[str, int]:
    return {name: table.delete_partition(pk)}
