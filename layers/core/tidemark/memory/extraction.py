"""Learning from conversations in the background.

A turn that may be learned from marks its conversation with the time at which it is due; every newer turn moves that time, and enough
pending turns make it now. An SQS message wakes a worker then, and the sweeper finds what a lost message left. One worker works on a
conversation at a time; it stores statement by statement, and the watermark moves in the transaction of the last one. Whatever it is
killed in between, the next one does again, and what is stored already changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidemark.clock import Time, iso, now
from tidemark.conversations.model import ConversationState, StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.errors import NotFoundError
from tidemark.ids import is_id, item_key, new_id
from tidemark.memory.extractor import Extractor
from tidemark.memory.indexing import Indexing
from tidemark.memory.learning import RANK, Learned, Learning
from tidemark.memory.model import SourceMessage
from tidemark.memory.scope import Scope
from tidemark.memory.store import Also
from tidemark.observability import logger, where
from tidemark.storage import keys, table
from tidemark.storage.leases import lease
from tidemark.storage.table import Item
from tidemark.tenancy.caller import Actor
from tidemark.tenancy.model import MemorySettings
from tidemark.tenancy.registry import Agents
from tidemark.tenancy.tenants import TenantService
from tidemark.work import Trigger, Wake, WorkQueue

LASTS = timedelta(seconds=125)  # a little longer than its function may run: a dead worker holds up nobody for long
ATTEMPTS = 20
BATCH_MESSAGES = 200  # read by one job; what is left makes the next one

State = Literal["queued", "running", "completed", "skipped", "failed"]
ENDED = ("completed", "skipped", "failed")


class Job(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    conversation_id: str
    external_subject_id: str | None
    state: State
    trigger: Trigger
    pending_turns: int
    from_message_id: str | None = None
    to_message_id: str | None = None
    entities: int = 0
    relations: int = 0
    attempts: int = 0
    lag_seconds: float = 0.0
    reason: str | None = None
    created_at: Time
    started_at: Time | None = None
    completed_at: Time | None = None

    def told(self, at: datetime) -> "Job":
        """As it stands at a time. A worker that died could not note that its job failed; what it left makes another one."""
        if self.state != "running" or self.started_at is None or at < self.started_at + LASTS:
            return self
        return self.model_copy(update={"state": "failed", "reason": "WorkerDied", "completed_at": self.started_at + LASTS})


class BusyError(Exception):
    """Another worker has the conversation; the message comes again."""


class Extraction:
    def __init__(
        self,
        queue: WorkQueue,
        store: ConversationStore,
        tenants: TenantService,
        agents: Agents,
        learning: Learning,
        indexing: Indexing,
        extractor: Callable[[MemorySettings], Extractor],
        known: Callable[[str, Scope], Mapping[str, str]],
    ) -> None:
        self._queue, self._store, self._tenants, self._agents = queue, store, tenants, agents
        self._learning, self._indexing, self._extractor, self._known = learning, indexing, extractor, known

    # waking
    def tell(self, state: ConversationState) -> None:
        """Wakes a worker when the conversation is due. Best effort: what is lost here the sweeper finds."""
        if state.extract_at is None:
            return
        wait = (state.extract_at - now()).total_seconds()
        trigger: Trigger = "cooldown" if wait > 1 else "pending_limit"
        wake = Wake(tenant_id=state.tenant_id, conversation_id=state.id, trigger=trigger, due=state.extract_at)
        try:
            self._queue.send(wake, round(wait + 0.5))
        except Exception as exc:  # noqa: BLE001 - the turn is stored; the sweeper goes by the table
            logger.warning("wake-up not sent", error=type(exc).__name__, where=where(exc))

    def request(self, state: ConversationState) -> Job:
        """A job for what is pending now; with nothing pending it has ended already."""
        job = self._new_job(state, "manual")
        if not state.pending_turns:
            ended = job.model_copy(update={"state": "skipped", "reason": "nothing_pending", "completed_at": job.created_at})
            self._put(state.tenant_id, state.external_subject_id, ended)
            return ended
        self._put(state.tenant_id, state.external_subject_id, job)
        self._queue.send(Wake(tenant_id=state.tenant_id, conversation_id=state.id, trigger="manual", job_id=job.id))
        return job

    def sweep(self, at: datetime, limit: int) -> int:
        """Wakes workers for conversations that are overdue, ever more rarely for those that stay so. How many it woke."""
        found = 0
        for shard in range(keys.DUE_SHARDS):
            for item in Item.by_due.query(f"due#{shard}", Item.gsi3sk < iso(at), limit=limit):
                state = item.read(ConversationState)
                if state.extract_at is None or not _worth_a_wake(at - state.extract_at):
                    continue
                self._queue.send(Wake(tenant_id=state.tenant_id, conversation_id=state.id, trigger="sweep", due=state.extract_at))
                found += 1
        return found

    # jobs
    @staticmethod
    def _new_job(state: ConversationState, trigger: Trigger) -> Job:
        return Job(
            id=new_id("ext"),
            conversation_id=state.id,
            external_subject_id=state.external_subject_id,
            state="queued",
            trigger=trigger,
            pending_turns=state.pending_turns,
            created_at=now(),
        )

    @staticmethod
    def _put(tenant_id: str, subject: str | None, job: Job) -> None:
        table.put(
            table.item(
                (keys.conversation(tenant_id, job.conversation_id), f"{keys.JOBS}{job.id}"),
                job,
                kind="job",
                gsi1pk=keys.extractions_of(tenant_id, keys.owner(subject)),
                gsi1sk=job.id,
                gsi2pk=keys.extractions(tenant_id),
                gsi2sk=job.id,
            )
        )

    def jobs(
        self,
        tenant_id: str,
        owner: str | None,
        accept: Callable[[Job], bool],
        limit: int,
        before: str | None,
    ) -> tuple[list[Job], str | None]:
        """Newest first."""
        listed, at = keys.extractions_of(tenant_id, owner) if owner is not None else None, now()
        found, more = table.newest(listed, keys.extractions(tenant_id), Job, lambda job: accept(job.told(at)), limit, before)
        return [job.told(at) for job in found], found[-1].id if more else None

    # working
    def run(self, wake: Wake, deadline: datetime | None = None) -> Job | None:
        """Does one conversation's extraction. None for a message that newer turns made stale. A model that does not answer before
        `deadline` fails the job, which a worker that ran out of time could not note.

        Raises BusyError while another worker has the conversation, and whatever fails, after it is noted in the job.
        """
        state = self._store.get(wake.tenant_id, wake.conversation_id)
        if state is None or state.state != "active":
            return None
        if wake.job_id is None and (not state.pending_turns or state.extract_at is None or state.extract_at > now() + timedelta(seconds=2)):
            return None
        with lease(keys.extraction_lease(wake.tenant_id, wake.conversation_id), LASTS) as ours:
            if not ours:
                raise BusyError
            fresh = self._store.get(wake.tenant_id, wake.conversation_id)
            # one that began to go meanwhile is left alone: its erasure waits for this lease, and comes behind it
            return self._work(fresh, wake, deadline) if fresh is not None and fresh.state == "active" else None

    def _work(self, state: ConversationState, wake: Wake, deadline: datetime | None) -> Job | None:
        job = self._job(state, wake)
        if job.state in ENDED:
            return job
        job = job.model_copy(update={"attempts": job.attempts + 1})
        try:
            messages = self._pending(state)
            job = self._begun(state, job, messages)
            learned = self._learn_all(state, messages, deadline)
        except Exception as exc:
            failed = job.model_copy(update={"state": "failed", "reason": type(exc).__name__, "completed_at": now()})
            self._put(state.tenant_id, state.external_subject_id, failed)
            logger.error("extraction failed", error=type(exc).__name__, where=where(exc), job_id=job.id)
            raise
        entities = {entity.id for one in learned for entity in one.entities}
        relations = {relation.id for one in learned for relation in one.relations}
        done = job.model_copy(
            update={
                "state": "completed" if messages else "skipped",
                "reason": None if messages else "nothing_pending",
                "entities": len(entities),
                "relations": len(relations),
                "completed_at": now(),
            }
        )
        self._put(state.tenant_id, state.external_subject_id, done)
        return done

    def _begun(self, state: ConversationState, job: Job, messages: Sequence[StoredMessage]) -> Job:
        """The job while it runs, noted."""
        started = now()
        oldest = messages[0].created_at if messages and messages[0].trust == "user" else job.created_at
        running = job.model_copy(
            update={
                "state": "running",
                "started_at": started,
                "pending_turns": state.pending_turns,
                "from_message_id": messages[0].id if messages else None,
                "to_message_id": messages[-1].id if messages else None,
                "lag_seconds": round(max(0.0, (started - oldest).total_seconds()), 3),
            }
        )
        self._put(state.tenant_id, state.external_subject_id, running)
        return running

    def _job(self, state: ConversationState, wake: Wake) -> Job:
        if wake.job_id is not None and is_id(wake.job_id, "ext"):
            found = table.read((keys.conversation(state.tenant_id, state.id), f"{keys.JOBS}{wake.job_id}"), Job)
            if found is not None:
                return found.model_copy(update={"state": "queued"}) if found.state == "failed" else found
        return self._new_job(state, wake.trigger)

    def _pending(self, state: ConversationState) -> list[StoredMessage]:
        """What no job has read yet, oldest first, over all branches: what was said was said."""
        after = f"msg_{state.extracted_key}Z" if state.extracted_key else None
        found: list[StoredMessage] = []
        for message in self._store.walk(state, None, after=after):
            if message.scope is not None and message.role in ("user", "assistant") and message.kind == "text":
                found.append(message)
            if len(found) >= BATCH_MESSAGES:
                break
        return self._store.load(state.tenant_id, found)

    def _learn_all(self, state: ConversationState, messages: Sequence[StoredMessage], deadline: datetime | None) -> list[Learned]:
        """Learns from messages of one scope after the other, and moves the watermark with the last statement, or by itself without one."""
        runs = [(key, list(run)) for key, run in groupby(messages, key=lambda one: one.scope) if key]
        mark = _Mark(self._store, state, messages)
        learned = [
            self._learn(state, key, run, deadline, mark.moving if place == len(runs) else None)
            for place, (key, run) in enumerate(runs, start=1)
        ]
        if not (learned and learned[-1].finished):
            table.retried(mark.move, "The conversation is being changed.", ATTEMPTS)
        if mark.more:
            self._queue.send(Wake(tenant_id=state.tenant_id, conversation_id=state.id, trigger="pending_limit", due=now()))
        return learned

    def _learn(
        self,
        state: ConversationState,
        scope_key: str,
        messages: Sequence[StoredMessage],
        deadline: datetime | None,
        finish: Callable[[], Also] | None,
    ) -> Learned:
        scope = _scope_of(scope_key, state)
        settings = self._tenants.settings(state.tenant_id)
        sources = [_source(message) for message in messages]
        statements = self._extractor(settings).extract(sources, self._known(state.tenant_id, scope), deadline)
        return self._learning.learn(
            state.tenant_id,
            scope,
            statements,
            {source.id: source for source in sources},
            Actor(kind="extraction", id=state.id),
            settings,
            threshold=self._threshold(state, settings),
            finish=finish,
        )

    def _threshold(self, state: ConversationState, settings: MemorySettings) -> str:
        """The stricter of tenant and agent."""
        try:
            agents = self._agents.find(state.tenant_id, state.agent_id).memory_config.importance_threshold
        except NotFoundError:
            agents = "low"
        return max(agents, settings.extraction.importance_threshold, key=lambda one: RANK[one])


class _Mark:
    """The watermark behind what a job has read; what came meanwhile stays pending with its own time."""

    def __init__(self, store: ConversationStore, state: ConversationState, messages: Sequence[StoredMessage]) -> None:
        self._store, self._first = store, state
        self._whole = len(messages) < BATCH_MESSAGES
        self._key = state.last_item_key if self._whole else item_key(messages[-1].id)
        self._read = sum(message.role == "user" for message in messages) if messages else state.pending_turns
        self.more = False  # whether this was a full batch and more waits

    def moving(self) -> Also:
        """The move as a part of a transaction, from what the conversation is now. A conversation that is gone has no mark."""
        state = self._store.get(self._first.tenant_id, self._first.id)
        if state is None:
            return lambda write: None
        waiting = max(0, state.pending_turns - self._read)
        due = (state.extract_at or now()) if waiting else None
        self.more = not self._whole and waiting > 0
        return lambda write: self._store.change(write, state, extracted_key=self._key, pending_turns=waiting, extract_at=due)

    def move(self) -> None:
        move = self.moving()
        with table.transaction() as write:
            move(write)


def _worth_a_wake(overdue: timedelta) -> bool:
    """In the first minutes, then after 4, 8, 16, 32 and each 60: a model that cannot be reached is not asked once a minute for ever."""
    minutes = int(overdue.total_seconds() // 60)
    return minutes & (minutes - 1) == 0 or minutes % 60 == 0


def _source(message: StoredMessage) -> SourceMessage:
    zone = timezone(timedelta(minutes=message.zone_minutes))
    return SourceMessage(
        id=message.id,
        conversation_id=message.conversation_id,
        role="assistant" if message.role == "assistant" else "user",
        speaker=message.name,
        content=message.content,
        at=message.created_at.astimezone(zone),
        trust=message.trust,
    )


def _scope_of(key: str, state: ConversationState) -> Scope:
    """The scope that a message's key stands for; the key was fixed when the message was stored."""
    if key.startswith("k."):
        return Scope(kind="knowledge_base", knowledge_base_id=key.removeprefix("k."))
    if key.startswith("s."):
        return Scope(kind="subject", external_subject_id=state.external_subject_id)
    return Scope(kind="tenant")
