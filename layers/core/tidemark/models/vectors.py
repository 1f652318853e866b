"""Vectors as the index takes them."""

import math

from tidemark.models.ports import ModelMalformedError


def unit(values: object) -> list[float]:
    """A vector of length one. Raises ModelMalformedError for what is none."""
    if not isinstance(values, list) or not values or not all(isinstance(value, int | float) for value in values):
        raise ModelMalformedError("a vector that is no list of numbers")
    length = math.sqrt(sum(value * value for value in values))
    if not length or not math.isfinite(length):
        raise ModelMalformedError("a vector without a direction")
    return [value / length for value in values]
