"""Compaction: the older part of a conversation becomes one summary, and nothing is lost.

Originals stay. A compaction is a record beside them, and the conversation's mark moves with it in one conditional write. One compaction
of a conversation runs at a time; who loses the race uses the winner's.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from tidemark.clock import now
from tidemark.conversations import assembly, budget
from tidemark.conversations.access import Setting
from tidemark.conversations.assembly import Parts
from tidemark.conversations.blocks import summary_block
from tidemark.conversations.budget import Cut
from tidemark.conversations.history import Base, History, Window
from tidemark.conversations.model import CompactionMark, ConversationState, StoredCompaction, StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.summary import Summarizer
from tidemark.ids import new_id
from tidemark.models import tokenizer
from tidemark.models.reported import share
from tidemark.storage import keys
from tidemark.storage.leases import held, lease
from tidemark.storage.table import StaleError

LEASE = "lease#compact"
MARGIN = timedelta(seconds=3)  # of the deadline, for what comes after a summary
POLL_SECONDS = 0.2

Trigger = Literal["auto", "manual"]
SkipReason = Literal["nothing_to_compact", "would_not_shrink", "in_progress"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction came to; `state` is the conversation afterwards."""

    state: ConversationState
    compaction: StoredCompaction | None
    skip_reason: SkipReason | None = None
    source_tokens: int = 0


def weigh(setting: Setting, state: ConversationState, base: Base, compaction: StoredCompaction | None) -> Parts:
    """The parts of the request that the next turn would start from, without reading a message."""
    factor = setting.model.factor
    kept = compaction.kept_tokens if compaction else 0
    replaced = compaction.branch_tokens if compaction else 0
    return Parts(
        system=tokenizer.count(assembly.system_prompt(setting), factor) + tokenizer.MESSAGE_OVERHEAD,
        summary=assembly.summary_tokens(compaction, factor),
        tail=base.tokens - replaced + kept,
        uncounted=uncounted_at(state, base),
    )


def uncounted_at(state: ConversationState, base: Base) -> int:
    """What the provider counted beyond the tokenizer at the head; a turn that starts from an earlier message has no such figure."""
    return state.uncounted if base.parent == state.head else 0


class Compactor:
    def __init__(self, store: ConversationStore, history: History, summarizer: Summarizer) -> None:
        self._store, self._history, self._summarizer = store, history, summarizer

    def compact(
        self,
        setting: Setting,
        state: ConversationState,
        base: Base,
        parts: Parts,
        trigger: Trigger,
        *,
        focus: str | None = None,
        deadline: datetime,
        reread: Callable[[], tuple[ConversationState, Base]],
    ) -> Outcome:
        """Compacts the branch of `base`. `parts` is the request it has to make room for; after `deadline` nobody waits any more.

        Raises SummaryFailedError when the model gave no summary; nothing has moved then.
        """
        key = (keys.conversation(state.tenant_id, state.id), LEASE)
        # a worker that dies holds the lease no longer than it could have worked
        with lease(key, deadline - now()) as ours:
            if ours:
                # what another one did between our read and the lease counts
                fresh, fresh_base = reread()
                return self._run(setting, fresh, fresh_base, parts, trigger, focus, deadline - MARGIN, reread)
        return self._wait(key, state, base, deadline - MARGIN, reread)

    def _wait(
        self,
        key: tuple[str, str],
        state: ConversationState,
        base: Base,
        deadline: datetime,
        reread: Callable[[], tuple[ConversationState, Base]],
    ) -> Outcome:
        """The winner's record, or `in_progress` where the wait runs out."""
        before = self._history.compaction(state, base.path)
        while held(key) and now() < deadline:
            time.sleep(POLL_SECONDS)
        state, base = reread()
        after = self._history.compaction(state, base.path)
        if after is None or (before is not None and after.id == before.id):
            return Outcome(state, None, "in_progress")
        return Outcome(state, after)

    def _run(
        self,
        setting: Setting,
        state: ConversationState,
        base: Base,
        parts: Parts,
        trigger: Trigger,
        focus: str | None,
        deadline: datetime,
        reread: Callable[[], tuple[ConversationState, Base]],
    ) -> Outcome:
        previous = self._history.compaction(state, base.path)
        window = self._history.window(state, base, previous)
        fixed = parts.system + parts.tools + parts.memory + parts.current
        cut = self._cut(setting, window, base, fixed, state.preferences.keep_user_chars, trigger)
        if cut is None:
            return Outcome(state, None, "nothing_to_compact")
        span = window.tail[: cut.tail_start]
        source_tokens = sum(message.weight for message in span) + assembly.summary_tokens(previous, setting.model.factor)
        text = self._summarizer.summarize(setting, span, previous, focus=focus, max_tokens=cut.summary_allowance, deadline=deadline)
        before = weigh(setting, state, base, previous).total + parts.tools + parts.memory + parts.current
        left = share(state.uncounted, cut.tail_tokens + cut.kept_tokens, source_tokens + cut.tail_tokens)
        record = self._record(setting, state, span, window, cut, previous, text, trigger, focus, before, fixed + left)
        if record.after_tokens >= record.before_tokens:
            return Outcome(state, None, "would_not_shrink")
        while True:
            try:
                marks = [*state.compactions, CompactionMark(id=record.id, upto=record.upto)]
                moved = self._store.add_compaction(state, record, compactions=marks, uncounted=left)
                return Outcome(moved, record, source_tokens=source_tokens)
            except StaleError:
                # turns that landed meanwhile lie behind the span: the record stands as it is, unless somebody rolled back or compacted
                state, base = reread()
                current = self._history.compaction(state, base.path)
                if (current.id if current else None) != (previous.id if previous else None):
                    return Outcome(state, current, None if current else "in_progress")

    def _cut(self, setting: Setting, window: Window, base: Base, fixed: int, keep_user_chars: int, trigger: Trigger) -> Cut | None:
        overhead = tokenizer.count(summary_block("", new_id("cmp")), setting.model.factor) + tokenizer.MESSAGE_OVERHEAD
        tail = window.tail
        # by hand the newest turn stays; before a turn the newest turn is the one that comes, unless it answers an open round
        protect = budget.newest_turn(tail) if trigger == "manual" or base.open_calls else len(tail)
        config = setting.agent.context_compression_config
        return budget.cut(
            tail,
            window.kept,
            protect_from=protect,
            allowance=budget.allowance(setting.budget, fixed + overhead),
            tail_max=config.tail_max_tokens,
            summary_max=config.summary_max_tokens,
            keep_user_chars=keep_user_chars,
            summary_now=tokenizer.count(window.compaction.summary, setting.model.factor) if window.compaction else 0,
        )

    @staticmethod
    def _record(
        setting: Setting,
        state: ConversationState,
        span: Sequence[StoredMessage],
        window: Window,
        cut: Cut,
        previous: StoredCompaction | None,
        summary: str,
        trigger: Trigger,
        focus: str | None,
        before_tokens: int,
        fixed: int,
    ) -> StoredCompaction:
        factor = setting.model.factor
        last = span[-1]
        record = StoredCompaction(
            id=new_id("cmp"),
            conversation_id=state.id,
            trigger=trigger,
            focus=focus,
            from_message_id=span[0].id,
            to_message_id=last.id,
            replaced_count=len(span),
            kept_user_messages=len(cut.kept_ids),
            previous_compaction_id=previous.id if previous else None,
            summary=summary,
            summary_tokens=tokenizer.count(summary, factor),
            before_tokens=before_tokens,
            after_tokens=0,
            model=setting.model.id,
            created_at=now(),
            upto=last.position,
            kept_message_ids=list(cut.kept_ids),
            kept_tokens=cut.kept_tokens,
            branch_tokens=last.branch_tokens,
        )
        after = fixed + assembly.summary_tokens(record, factor) + cut.kept_tokens + cut.tail_tokens
        return record.model_copy(update={"after_tokens": after})
