"""One turn: read the conversation, recall, make room, ask the model, store question and answer in one step.

The turn's record is written first, so that whoever lost its connection finds it; messages, answer, frame and the finished record are one
transaction, so a turn is stored whole or not at all. Two turns at the same time each read what was there; the second one to finish is
appended behind the first.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pynamodb.transactions import TransactWrite

from tidemark import ids
from tidemark.clock import now
from tidemark.conversations import assembly
from tidemark.conversations.access import ConversationAccess, Setting
from tidemark.conversations.assembly import Parts, RecalledBlock
from tidemark.conversations.budget import SAFETY_MARGIN, TRIGGER_RATIO, pressure_level
from tidemark.conversations.compaction import Compactor, Outcome, uncounted_at, weigh
from tidemark.conversations.history import Base, History, Window, without_room
from tidemark.conversations.model import (
    AnswerMetadata,
    ConversationState,
    Draft,
    FinishReason,
    Frame,
    StoredMessage,
    TokenUsage,
    Turn,
    TurnAnswer,
    TurnRecord,
)
from tidemark.conversations.requests import CompletionTurn, TurnBody
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.summary import SummaryFailedError
from tidemark.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    TidemarkError,
    UpstreamError,
    UpstreamTimeoutError,
)
from tidemark.http.problems import problem
from tidemark.memory.questions import Said, said
from tidemark.memory.turn_memory import Explicit, TurnMemory
from tidemark.models import tokenizer
from tidemark.models.ports import (
    Attachment,
    Model,
    ModelError,
    ModelResponse,
    TextDelta,
    ToolDefinition,
)
from tidemark.observability import logger, where
from tidemark.privacy import traces
from tidemark.storage import table
from tidemark.storage.table import StaleError
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Caller

if TYPE_CHECKING:
    from tidemark.conversations.agent_tools import AgentTools

TITLE_LENGTH = 80
COMMIT_ATTEMPTS = 20
NOTICE_FAILED = "The conversation could not be compacted: the model gave no summary."
NOTICE_USELESS = "A compaction was left out: its summary would not have been shorter than what it replaces."
NOTICE_STILL_OVER = "The conversation is still over its threshold right after a compaction."


@dataclass(frozen=True, slots=True)
class Event:
    """What a stream tells; `data` is one JSON object."""

    name: Literal["message_start", "compression_start", "compression_end", "delta", "tool_call", "message_end", "error"]
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Assembled:
    """A turn that is ready for the model."""

    setting: Setting
    state: ConversationState
    base: Base
    window: Window
    recalled: RecalledBlock
    drafts: tuple[Draft, ...]
    tools: tuple[ToolDefinition, ...]
    parts: Parts
    compacted: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    draft: Draft
    uncounted: int
    usage: TokenUsage
    model: str
    finish_reason: FinishReason


class TurnService:
    def __init__(
        self,
        store: ConversationStore,
        history: History,
        access: ConversationAccess,
        compactor: Compactor,
        memory: TurnMemory,
        model: Model,
        agent_tools: "AgentTools | None" = None,
    ) -> None:
        self._agent_tools = agent_tools
        self._store, self._history, self._access = store, history, access
        self._compactor, self._memory, self._model = compactor, memory, model

    # asked later
    def get(self, caller: Caller, conversation_id: str, turn_id: str) -> Turn:
        """The turn's state and, once it is there, its answer. A turn whose worker died has failed."""
        state = self._access.find(caller, conversation_id)
        record = self._store.get_turn(caller.tenant_id, conversation_id, turn_id)
        if record is None:
            raise NotFoundError
        if record.state == "running" and record.deadline < now():
            error = UpstreamTimeoutError("The turn did not finish.", code="turn_interrupted")
            record = record.model_copy(update={"state": "failed", "problem": problem(error, turn_id), "completed_at": record.deadline})
        answer = None
        if record.answer_message_id and record.metadata:
            found = self._store.message(state, record.answer_message_id)
            message = self._store.load(caller.tenant_id, [found])[0] if found else None
            if message is not None:
                answer = TurnAnswer(message=message.public(), conversation_id=state.id, turn_id=turn_id, metadata=record.metadata)
        return Turn(
            turn_id=turn_id,
            conversation_id=state.id,
            state=record.state,
            answer=answer,
            problem=record.problem,
            created_at=record.created_at,
            completed_at=record.completed_at,
        )

    # one turn
    def answer(self, caller: Caller, conversation_id: str, body: TurnBody, deadline: datetime) -> TurnAnswer:
        """The whole answer of a turn. Raises the turn's error."""
        return TurnAnswer.model_validate(last(self.run(caller, conversation_id, body, deadline, raising=True)))

    def run(self, caller: Caller, conversation_id: str, body: TurnBody, deadline: datetime, *, raising: bool = False) -> Iterator[Event]:
        """The events of a turn. What is refused before message_start is raised; later errors are an `error` event unless `raising`."""
        done = self._done_before(caller, conversation_id)
        if done is not None:
            yield Event("message_start", {"conversation_id": conversation_id, "turn_id": done.turn_id})
            yield Event("message_end", done.model_dump(mode="json"))
            return
        state = self._access.find(caller, conversation_id)
        base = self._history.base(state, "parent_id" in body.model_fields_set, body.parent_id)
        check_round(base.open_calls, body)
        turn = TurnRecord(turn_id=ids.new_id("trn"), conversation_id=state.id, state="running", created_at=now(), deadline=deadline)
        self._store.put_turn(caller.tenant_id, turn)
        traces.note_turn(turn.turn_id)
        yield Event("message_start", {"conversation_id": state.id, "turn_id": turn.turn_id})
        try:
            yield from self._run(caller, state, base, body, turn)
        except TidemarkError as error:
            self._fail(caller, turn, error)
            if raising:
                raise
            yield Event("error", problem(error, turn.turn_id))
        except Exception as exc:
            logger.error("turn failed", error=type(exc).__name__, where=where(exc), turn_id=turn.turn_id)
            self._fail(caller, turn, TidemarkError("Something went wrong on our side."))
            raise

    def _done_before(self, caller: Caller, conversation_id: str) -> TurnAnswer | None:
        """The answer of this very request, where its worker stored the turn and died before it could say so."""
        earlier = traces.earlier()
        if earlier is None or earlier.turn_id is None:
            return None
        try:
            return self.get(caller, conversation_id, earlier.turn_id).answer
        except NotFoundError:
            return None

    def _fail(self, caller: Caller, turn: TurnRecord, error: TidemarkError) -> None:
        failed = {"state": "failed", "problem": problem(error, turn.turn_id), "completed_at": now()}
        self._store.put_turn(caller.tenant_id, turn.model_copy(update=failed))

    def _run(self, caller: Caller, state: ConversationState, base: Base, body: TurnBody, turn: TurnRecord) -> Iterator[Event]:
        setting = instructed(self._access.setting(caller, state), body)
        explicit = self._memory.explicit(setting.scope, setting.memory, body) if not base.open_calls else None
        if explicit is not None:
            yield from self._confirm(caller, setting, state, base, body, turn, explicit)
            return
        learn = self._memory.learnable(setting, wanted=body.memory == "auto")
        drafts = self._drafts(setting, body, learn)
        given = tuple(ToolDefinition(**tool.model_dump()) for tool in body.tools)
        own = self._own_tools(setting, body, given)
        tools = (*own, *given)
        recalled = self._recall(caller, setting, state, base, body)
        assembled = yield from self._assemble(caller, setting, state, base, recalled, drafts, tools, body, turn)
        answer = yield from self._ask(caller, assembled, body, turn.deadline, learn, frozenset(tool.name for tool in own))
        yield self._commit(caller, assembled, answer, turn, drafts, None)

    def _drafts(self, setting: Setting, body: TurnBody, scope: str | None) -> tuple[Draft, ...]:
        """The messages that the caller brings: results of the open round first, then words."""
        at, factor = now(), setting.model.factor
        results = [
            weighed(
                Draft(role="tool", kind="tool_result", content=one.content, tool_call_id=one.tool_call_id, tokens=0, created_at=at), factor
            )
            for one in body.tool_results
        ]
        if body.content is None:
            return tuple(results)
        earlier = body.earlier if isinstance(body, CompletionTurn) else []
        before = [Draft(role="user", content=one.content, name=one.name, tokens=0, created_at=at, scope=scope) for one in earlier]
        attachments = [Attachment(**one.model_dump()) for one in body.attachments]
        words = Draft(role="user", content=body.content, name=body.name, attachments=attachments, tokens=0, created_at=at, scope=scope)
        return (*results, *(weighed(one, factor) for one in before), weighed(words, factor))

    def _recall(self, caller: Caller, setting: Setting, state: ConversationState, base: Base, body: TurnBody) -> RecalledBlock:
        if setting.scope is None or body.memory == "off" or body.content is None:
            return RecalledBlock()
        return self._memory.recall(caller.tenant_id, setting, state, base, body.content, self._recent(state, base, body))

    def _recent(self, state: ConversationState, base: Base, body: TurnBody) -> Iterator[Said]:
        """What was said before the turn's words, newest first."""
        earlier = body.earlier if isinstance(body, CompletionTurn) else []
        yield from (("user", one.content) for one in reversed(earlier))
        yield from (said(one.role, one.content) for one in self._history.recent(state, base))

    # making room
    def _assemble(
        self,
        caller: Caller,
        setting: Setting,
        state: ConversationState,
        base: Base,
        recalled: RecalledBlock,
        drafts: tuple[Draft, ...],
        tools: tuple[ToolDefinition, ...],
        body: TurnBody,
        turn: TurnRecord,
    ) -> Generator[Event, None, _Assembled]:
        compaction = self._history.compaction(state, base.path)
        current = sum(draft.tokens + draft.attachment_tokens for draft in drafts)
        parts = replace(
            weigh(setting, state, base, compaction),
            tools=tokenizer.count_tools(tools, setting.model.factor),
            current=current,
        )
        room = setting.budget.input_budget - parts.system - parts.tools - parts.current
        if recalled.tokens > room:
            recalled = RecalledBlock()
        parts = replace(parts, memory=recalled.tokens)
        automatic = state.preferences.automatic_compaction and setting.agent.context_compression_config.enabled
        compacted = False
        if (
            automatic
            and parts.total >= setting.budget.trigger_budget
            and parts.system + parts.tools + parts.current <= setting.budget.input_budget
        ):
            outcome = yield from self._make_room(caller, setting, state, base, body, parts, turn)
            state, base = outcome.state, self._rebase(outcome.state, base, body)
            compacted = outcome.skip_reason is None
            compaction = self._history.compaction(state, base.path)
            parts = replace(weigh(setting, state, base, compaction), tools=parts.tools, memory=parts.memory, current=current)
        window: Window | None = None
        over = parts.total - setting.budget.input_budget
        if over > 0 and compaction is not None and compaction.kept_tokens:
            # kept words stand beside the summary where there is room; they never cost a turn
            window = without_room(self._history.window(state, base, compaction), compaction.kept_tokens - over)
            parts = replace(parts, tail=parts.tail - sum(message.weight for message in window.dropped))
        assembly.check_fits(parts, setting, automatic=automatic)
        window = window or self._history.window(state, base, compaction)
        recalled = assembly.without_said(recalled, (*window.kept, *window.tail, *drafts), setting.model.factor)
        parts = replace(parts, memory=recalled.tokens)
        return _Assembled(setting, state, base, window, recalled, drafts, tools, parts, compacted)

    def _rebase(self, state: ConversationState, base: Base, body: TurnBody) -> Base:
        """The same branch in a conversation that was read again."""
        return self._history.base(state, "parent_id" in body.model_fields_set, body.parent_id)

    def _make_room(
        self,
        caller: Caller,
        setting: Setting,
        state: ConversationState,
        base: Base,
        body: TurnBody,
        parts: Parts,
        turn: TurnRecord,
    ) -> Generator[Event, None, Outcome]:
        def reread() -> tuple[ConversationState, Base]:
            fresh = self._access.find(caller, state.id)
            return fresh, self._rebase(fresh, base, body)

        told = setting.agent.context_compression_config.emit_sse_events
        if told:
            yield Event("compression_start", {"stage": "preflight", "trigger": "auto"})
        fits = parts.total <= setting.budget.input_budget
        note = None
        try:
            outcome = self._compactor.compact(setting, state, base, parts, "auto", deadline=turn.deadline, reread=reread)
        except SummaryFailedError:
            state = self.notice(caller, state.id, NOTICE_FAILED)
            if not fits:
                raise
            outcome, note = Outcome(state, None, "would_not_shrink"), "context_summarization_failed"
        else:
            if outcome.skip_reason == "would_not_shrink":
                outcome = replace(outcome, state=self.notice(caller, state.id, NOTICE_USELESS))
            elif outcome.compaction is not None and outcome.compaction.after_tokens >= setting.budget.trigger_budget:
                outcome = replace(outcome, state=self.notice(caller, state.id, NOTICE_STILL_OVER))
        if told:
            yield Event("compression_end", _compression_end(setting, outcome, parts, note or outcome.skip_reason))
        return outcome

    def notice(self, caller: Caller, conversation_id: str, text: str) -> ConversationState:
        """Says something to the people who look at the conversation; no model ever reads it."""

        def attempt() -> ConversationState:
            state = self._access.find(caller, conversation_id)
            base = self._history.base(state, False, None)
            draft = Draft(role="notice", kind="notice", content=text, tokens=0, created_at=now())
            changed, _ = self._store.append(state, base.parent, base.parent_id, [draft], branch_tokens=base.tokens)
            return changed

        return table.retried(attempt, "Too many writers at the same time.", COMMIT_ATTEMPTS)

    # the model
    def _own_tools(self, setting: Setting, body: TurnBody, given: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """The agent's own tools, where there is a model that takes them and memory is wanted."""
        if self._agent_tools is None or body.memory == "off":
            return ()
        return self._agent_tools.offered(setting, frozenset(tool.name for tool in given))

    def _ask(
        self, caller: Caller, ready: _Assembled, body: TurnBody, deadline: datetime, learn: str | None, own: frozenset[str]
    ) -> Generator[Event, None, _Answer]:
        asked = assembly.request(ready.setting, ready.recalled, ready.window, ready.drafts, ready.tools, body.max_tokens)
        asked = asked.model_copy(update={"deadline": deadline})
        events = (
            self._agent_tools.stream(caller, ready.setting, ready.state, asked, own)
            if self._agent_tools is not None and own
            else self._model.stream(asked)
        )
        response = yield from told(events)
        draft = Draft(
            role="assistant",
            kind="tool_calls" if response.tool_calls else "text",
            content=response.text,
            tool_calls=list(response.tool_calls),
            tokens=0,
            created_at=now(),
            scope=learn,
            derived=bool(ready.recalled.block),
        )
        counted = ready.parts.total - ready.parts.uncounted
        uncounted, factor = self._access.heard(caller, ready.setting, asked, counted, response.request_tokens)
        return _Answer(
            draft=weighed(draft, factor),
            uncounted=uncounted,
            usage=TokenUsage(**response.usage.model_dump()),
            model=response.model,
            finish_reason=response.finish_reason,
        )

    # storing
    def _commit(
        self, caller: Caller, ready: _Assembled, answer: _Answer, turn: TurnRecord, drafts: Sequence[Draft], first_key: str | None
    ) -> Event:
        state, base = ready.state, ready.base
        for _ in range(COMMIT_ATTEMPTS):
            try:
                return self._store_turn(caller, replace(ready, state=state, base=base), answer, turn, drafts, first_key)
            except StaleError:
                state = self._access.find(caller, state.id)
                base = self._behind(state, ready.base, drafts)
        raise ConflictError("Too many turns in this conversation at the same time.")

    def _behind(self, state: ConversationState, base: Base, drafts: Sequence[Draft]) -> Base:
        """Where a turn lands that another one overtook: behind it, unless the caller named its parent."""
        if not base.follows_head:
            return base
        fresh = self._history.base(state, False, None)
        if fresh.open_calls and drafts[0].role != "tool":
            raise ConflictError("The model waits for the results of its tools.", code="tool_results_pending")
        if not fresh.open_calls and drafts[0].role == "tool":
            raise InvalidError.field("/tool_results", "These calls have been answered.")
        return fresh

    def _store_turn(
        self,
        caller: Caller,
        ready: _Assembled,
        answer: _Answer,
        turn: TurnRecord,
        drafts: Sequence[Draft],
        first_key: str | None,
    ) -> Event:
        state = ready.state
        metadata = AnswerMetadata(
            memory_used=bool(ready.recalled.block),
            compacted=ready.compacted,
            model=answer.model,
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )
        finished: list[Frame] = []

        def also(write: TransactWrite, stored: Sequence[StoredMessage]) -> None:
            made = assembly.frame(
                ready.setting, ready.recalled, ready.window, stored[:-1], ready.tools,
                conversation_id=state.id, turn_id=turn.turn_id, parts=ready.parts,
            )  # fmt: skip
            done = turn.model_copy(
                update={"state": "completed", "answer_message_id": stored[-1].id, "metadata": metadata, "completed_at": now()}
            )
            write.save(self._store.frame_item(caller.tenant_id, made))
            write.save(self._store.turn_item(caller.tenant_id, done))
            finished.append(made)

        changed, stored = self._store.append(
            state,
            ready.base.parent,
            ready.base.parent_id,
            [*drafts, answer.draft],
            turn_id=turn.turn_id,
            also=also,
            branch_tokens=ready.base.tokens,
            first_key=first_key,
            changes={**self._changes(ready.setting, state, drafts), "uncounted": answer.uncounted},
        )
        usage.add(
            caller.tenant_id,
            turns=1,
            messages=len(stored),
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
        )
        self._memory.stored(changed)
        body = TurnAnswer(message=stored[-1].public(), conversation_id=state.id, turn_id=turn.turn_id, metadata=metadata)
        return Event("message_end", body.model_dump(mode="json"))

    def _changes(self, setting: Setting, state: ConversationState, drafts: Sequence[Draft]) -> dict[str, object]:
        changes: dict[str, object] = self._memory.pending(setting, state, drafts)
        if state.title is None:
            changes["title"] = title_of(drafts)
        return changes

    # explicit memory
    def _confirm(
        self,
        caller: Caller,
        setting: Setting,
        state: ConversationState,
        base: Base,
        body: TurnBody,
        turn: TurnRecord,
        explicit: Explicit,
    ) -> Iterator[Event]:
        """Stores what the user asked to remember, then the turn that confirms it: a crash in between stores it once more, not twice."""
        factor = setting.model.factor
        drafts = self._drafts(setting, body, None)
        key = ids.new_item_key(state.last_item_key)
        confirmation = self._memory.remember(caller, setting, state, explicit, ids.message_id(key, len(drafts) - 1), drafts[-1])
        draft = weighed(Draft(role="assistant", kind="memory_confirmation", content=confirmation, tokens=0, created_at=now()), factor)
        yield Event("delta", {"text": confirmation})
        answer = _Answer(
            draft=draft,
            uncounted=uncounted_at(state, base),
            usage=TokenUsage(input_tokens=sum(one.tokens for one in drafts), output_tokens=tokenizer.count(confirmation, factor)),
            model=setting.model.id,
            finish_reason="memory_confirmation",
        )
        window = Window(None, (), ())
        parts = replace(Parts(), current=sum(one.tokens for one in drafts))
        ready = _Assembled(setting, state, base, window, RecalledBlock(), drafts, (), parts, False)
        yield self._commit(caller, ready, answer, turn, drafts, key)


def last(events: Iterable[Event]) -> dict[str, Any]:
    """The answer at the end of a turn's events. Raises UpstreamError where there is none."""
    for event in events:
        if event.name == "message_end":
            return event.data
    raise UpstreamError("The turn ended without an answer.")


def told(events: Iterable[TextDelta | ModelResponse]) -> Generator[Event, None, ModelResponse]:
    """A model's stream as a turn's events, and its whole response at the end. Raises UpstreamError for a model that gave none."""
    response: ModelResponse | None = None
    try:
        for event in events:
            if isinstance(event, TextDelta):
                yield Event("delta", {"text": event.text})
            else:
                response = event
    except ModelError as exc:
        raise UpstreamError("The model gave no answer.", code=exc.code, retryable=exc.retryable) from exc
    if response is None:
        raise UpstreamError("The model gave no answer.", code="model_malformed", retryable=True)
    for call in response.tool_calls:
        yield Event("tool_call", call.model_dump())
    return response


def instructed(setting: Setting, body: TurnBody) -> Setting:
    """The setting with the instructions that the turn itself brings behind the agent's own."""
    if not isinstance(body, CompletionTurn) or not body.instructions:
        return setting
    prompt = "\n\n".join(filter(None, (setting.agent.system_prompt, body.instructions)))
    return replace(setting, agent=setting.agent.model_copy(update={"system_prompt": prompt}))


def check_round(open_calls: Sequence[str], body: TurnBody) -> None:
    """Results answer all open calls at once, and nothing else is said while calls are open."""
    given = [result.tool_call_id for result in body.tool_results]
    if not given:
        if open_calls:
            raise ConflictError("The model waits for the results of its tools.", code="tool_results_pending", missing=list(open_calls))
        return
    missing = [call for call in open_calls if call not in given]
    unknown = [call for call in given if call not in open_calls]
    repeated = len(set(given)) < len(given)
    if missing or unknown or repeated:
        told = [f"missing: {', '.join(missing)}"] if missing else []
        told += [f"unknown: {', '.join(unknown)}"] if unknown else []
        told += ["a call is answered twice"] if repeated else []
        raise InvalidError.field("/tool_results", f"The results do not answer the open calls; {'; '.join(told)}.")


def title_of(drafts: Sequence[Draft]) -> str | None:
    """A conversation's title: its first user message, shortened."""
    first = next((draft.content for draft in drafts if draft.role == "user"), None)
    if first is None:
        return None
    line = " ".join(first.split())
    return (line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…") or None


def weighed(draft: Draft, factor: float) -> Draft:
    """The draft with its tokens, counted once and then stored."""
    bare = assembly.model_message(draft).model_copy(update={"attachments": ()})
    attachments = assembly.attachment_tokens([one.model_dump() for one in draft.attachments], factor)
    return draft.model_copy(update={"tokens": tokenizer.count_message(bare, factor), "attachment_tokens": attachments})


def _compression_end(setting: Setting, outcome: Outcome, parts: Parts, note: str | None) -> dict[str, Any]:
    record, figures = outcome.compaction, setting.budget
    before = record.before_tokens if record else parts.total
    after = record.after_tokens if record else parts.total
    result = record.summary_tokens if record else 0
    source = outcome.source_tokens if record else 0
    return {
        "stage": "preflight",
        "trigger": "auto",
        "pressure_level": pressure_level(before, figures),
        "before_tokens": before,
        "after_tokens": after,
        "input_budget": figures.input_budget,
        "trigger_ratio": TRIGGER_RATIO,
        "utilization_before": round(before / figures.window, 4),
        "utilization_after": round(after / figures.window, 4),
        "policy_used": "preflight_summary",
        "actions": ["summarize_history"] if record else [],
        "summary_turns": record.replaced_count if record else 0,
        "summary_source_tokens": source,
        "summary_result_tokens": result,
        "summary_saved_tokens": source - result,
        "context_limit": figures.window,
        "output_reserve": figures.output_reserve,
        "safety_margin": SAFETY_MARGIN,
        "note": note,
    }
