"""Vectors as the index takes them."""

import math
from abc import ABC, abstractmethod

from tidemark.models.ports import ModelMalformedError

EMPTY_TEXT = "-"  # providers refuse a blank text; it still gets a vector


class RemoteEmbedder(ABC):
    """What embedders of a provider share: the model's name, and its dimension as given, as known, or as its first vector has it."""

    def __init__(self, model_id: str, dimension: int | None) -> None:
        self._model, self._dimension = model_id, dimension

    @property
    def model_id(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = len(self.embed_query(EMPTY_TEXT))
        return self._dimension

    @abstractmethod
    def embed_query(self, text: str) -> list[float]: ...


def unit(values: object) -> list[float]:
    """A vector of length one. Raises ModelMalformedError for what is none."""
    if not isinstance(values, list) or not values or not all(isinstance(value, int | float) for value in values):
        raise ModelMalformedError("a vector that is no list of numbers")
    length = math.sqrt(sum(value * value for value in values))
    if not length or not math.isfinite(length):
        raise ModelMalformedError("a vector without a direction")
    return [value / length for value in values]
