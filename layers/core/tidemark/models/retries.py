"""When a model is asked again: transient errors, before anything was said, with jitter, inside the deadline."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime

from tidemark.clock import now
from tidemark.models.ports import ModelError, ModelRequest, ModelResponse, TextDelta

ATTEMPTS = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds, of which half is jitter
LEAST_USEFUL = 1.0  # seconds that must be left for another attempt to be worth it

Attempt = Callable[[], Iterator[TextDelta | ModelResponse]]


def seconds_left(deadline: datetime | None) -> float | None:
    return None if deadline is None else (deadline - now()).total_seconds()


def with_retries(
    request: ModelRequest, attempt: Attempt, sleep: Callable[[float], None] = time.sleep
) -> Iterator[TextDelta | ModelResponse]:
    """The events of the first attempt that speaks. A summary is attempted once: whoever asks for it counts its attempts itself."""
    attempts = 1 if request.purpose == "summary" else ATTEMPTS
    for number in range(1, attempts + 1):
        spoken = False
        try:
            for event in attempt():
                spoken = True
                yield event
        except ModelError as error:
            pause = pause_before_next(error, number, request.deadline)
            if spoken or number == attempts or pause is None:
                raise
        else:
            return
        sleep(pause)


def pause_before_next(error: ModelError, number: int, deadline: datetime | None) -> float | None:
    """How long to wait after attempt `number`; None where another one cannot help or would come too late."""
    if not error.retryable:
        return None
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1))
    pause = max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0)  # noqa: S311 - jitter
    left = seconds_left(deadline)
    return None if left is not None and pause + LEAST_USEFUL > left else pause
