"""Stand-ins for the two models: one whose answers a test scripts, one whose vectors need no weights."""

import hashlib
import math
import re
from collections import deque
from collections.abc import Iterator, Sequence

from tidemark.models import tokenizer
from tidemark.models.ports import (
    FinishReason,
    ModelContextTooLongError,
    ModelError,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ToolCall,
    Usage,
)

Answer = str | ModelError | Sequence[ToolCall]


class ScriptedModel:
    """Answers what was enqueued for a purpose, in order, then `default`; `asked` holds every request.

    `factor` is how many tokens its tokenizer makes of one of o200k_base; with a `window` it refuses what does not fit, as a provider does.
    """

    def __init__(self, default: str = "Understood.", factor: float = 1.0, window: int | None = None) -> None:
        self.default, self.factor, self.window = default, factor, window
        self.asked: list[ModelRequest] = []
        self._script: dict[str, deque[Answer]] = {}

    def enqueue(self, *answers: Answer, purpose: str = "turn") -> None:
        self._script.setdefault(purpose, deque()).extend(answers)

    def of(self, purpose: str) -> list[ModelRequest]:
        return [request for request in self.asked if request.purpose == purpose]

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        self.asked.append(request)
        read = tokenizer.count_request(request, self.factor)
        if self.window is not None and read + request.max_tokens > self.window:
            raise ModelContextTooLongError
        waiting = self._script.get(request.purpose)
        answer = waiting.popleft() if waiting else self.default
        if isinstance(answer, ModelError):
            raise answer
        text = answer if isinstance(answer, str) else ""
        calls = () if isinstance(answer, str) else tuple(answer)
        finish: FinishReason = "tool_calls" if calls else "stop"
        if text:
            yield TextDelta(text=text)
        usage = Usage(input_tokens=read, output_tokens=tokenizer.count(text))
        yield ModelResponse(text=text, tool_calls=calls, finish_reason=finish, usage=usage, model=request.model_id)


class HashEmbedder:
    """Words hashed to a few directions: texts that share words are near, the same text has the same vector everywhere."""

    model_id = "test-hash"
    dimension = 32

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * self.dimension
        for word in re.findall(r"\w+", text.casefold()) or [""]:
            place = hashlib.sha256(word.encode()).digest()
            vector[place[0] % self.dimension] += 1.0 if place[1] % 2 else -1.0
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]
