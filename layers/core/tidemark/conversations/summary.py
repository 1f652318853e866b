"""Writing the summary of a span, with the conversation's own model."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from tidemark.clock import now
from tidemark.conversations.access import Setting
from tidemark.conversations.assembly import model_message
from tidemark.conversations.model import StoredCompaction, StoredMessage
from tidemark.errors import UpstreamError
from tidemark.models import tokenizer
from tidemark.models.ports import Model, ModelError, ModelRequest, complete
from tidemark.observability import logger

ATTEMPTS, PAUSE_SECONDS, ATTEMPT_SECONDS = 3, 2.0, 180.0
HEADINGS = (
    "Objective (in the user's own words)",
    "Requirements and constraints",
    "Progress: completed actions and results with exact identifiers",
    "Findings with their sources",
    "Decisions",
    "Files",
    "Open threads: pending work",
    "Next step",
)
INSTRUCTIONS = """You keep the record of a conversation. Write one record of everything below, which it will replace.
Use these headings, and leave out one that has nothing: {headings}.
Write in the language of the conversation. Keep names, numbers, ids, dates and paths exactly as written. If there is an earlier record,
carry all of its facts over. State what happened as past; give no instructions and add nothing that was not said.{focus}
At most {tokens} tokens."""


class SummaryFailedError(UpstreamError):
    """The model was unavailable or answered nothing, three times."""

    code = "context_summarization_failed"


class Summarizer:
    def __init__(self, model: Model) -> None:
        self._model = model

    def summarize(
        self,
        setting: Setting,
        span: Sequence[StoredMessage],
        previous: StoredCompaction | None,
        *,
        focus: str | None,
        max_tokens: int,
        deadline: datetime,
    ) -> str:
        """One summary of the previous one and the span, at most `max_tokens` long; a span over the model's window is folded in parts.

        Raises SummaryFailedError.
        """
        text = previous.summary if previous else ""
        for part in self._parts(setting, span, max_tokens):
            text = self._fold(setting, part, text, focus, max_tokens, deadline)
        return text

    def _parts(self, setting: Setting, span: Sequence[StoredMessage], max_tokens: int) -> Iterator[list[StoredMessage]]:
        """Stretches of the span that fit one call beside the instructions and the summary so far."""
        factor = setting.model.factor
        room = max(500, setting.budget.input_budget - 2 * max_tokens - tokenizer.scaled(600, factor))
        part: list[StoredMessage] = []
        used = 0
        for message in span:
            for piece in _pieces(message, room):
                weight = tokenizer.count(piece.content, factor) + tokenizer.MESSAGE_OVERHEAD + piece.attachment_tokens
                if part and used + weight > room:
                    yield part
                    part, used = [], 0
                part.append(piece)
                used += weight
        if part:
            yield part

    def _fold(
        self,
        setting: Setting,
        part: Sequence[StoredMessage],
        so_far: str,
        focus: str | None,
        max_tokens: int,
        deadline: datetime,
    ) -> str:
        stress = f"\nGive most room to: {focus}" if focus else ""
        request = ModelRequest(
            purpose="summary",
            model_id=setting.model.id,
            system=INSTRUCTIONS.format(headings="; ".join(HEADINGS), focus=stress, tokens=max_tokens),
            summary=so_far or None,
            messages=tuple(model_message(message) for message in part),
            max_tokens=max_tokens,
        )
        for attempt in range(1, ATTEMPTS + 1):
            text = self._attempt(request, deadline)
            if text:
                return tokenizer.cut(text, _unscaled(max_tokens, setting.model.factor)).rstrip()
            if attempt < ATTEMPTS and now() + timedelta(seconds=PAUSE_SECONDS) < deadline:
                time.sleep(PAUSE_SECONDS)
        raise SummaryFailedError("The model gave no summary of the conversation.")

    def _attempt(self, request: ModelRequest, deadline: datetime) -> str:
        ends = now() + timedelta(seconds=ATTEMPT_SECONDS)
        limited = request.model_copy(update={"deadline": min(ends, deadline)})
        try:
            return complete(self._model, limited).text.strip()
        except ModelError as exc:
            logger.warning("summary attempt failed", error=type(exc).__name__, code=exc.code)
            return ""


def _unscaled(tokens: int, factor: float) -> int:
    return int(tokens / factor)


def _pieces(message: StoredMessage, room: int) -> Iterator[StoredMessage]:
    """A message, cut where it alone is over the room."""
    if message.weight <= room or not message.content:
        yield message
        return
    characters = max(200, len(message.content) * room // (2 * max(message.weight, 1)))
    for start in range(0, len(message.content), characters):
        yield message.model_copy(update={"content": message.content[start : start + characters], "attachments": [], "attachment_tokens": 0})
