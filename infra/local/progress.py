"""What the terminal shows while the stack starts."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Failure(Exception):
    """A step that cannot go on, told in words for the person at the terminal."""


class Progress:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        self.say(f"{text} ...")
        began = time.monotonic()
        yield
        self.say(f"{text}: done in {time.monotonic() - began:.1f} s")
