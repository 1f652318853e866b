"""What a cosine or a share of found words is worth: evidence that a text answers a question, comparable between models and scopes.

Embedding models put unrelated texts anywhere from 0 to 0.8, and gibberish close to everything. So a cosine is measured against those of
the same question with sentences about nothing in particular, the model's background: what is hardly nearer than they are is no answer,
whether a scope holds one memory or ten thousand. `data/calibration.json` says where its figures come from (tests/bench/calibrate.py).
"""

import json
import math
import sys
from array import array
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import Any

from tidemark.search.port import Candidate


@dataclass(frozen=True, slots=True)
class Background:
    """How near a question is to what is about nothing: to all of it, and to the nearer half."""

    mean: float
    nearest: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What each arm says for a candidate, from 0 (nothing); 3 is about 20 to 1. They add up."""

    vector: float
    text: float
    name: float

    @property
    def total(self) -> float:
        return self.vector + self.text + self.name


@dataclass(frozen=True, slots=True)
class Calibration:
    background: tuple[tuple[float, ...], ...]  # unit vectors of the model's background sentences
    bias: float
    above_mean: float
    above_nearest: float
    text_bias: float
    text_coverage: float
    name: float
    floor: float  # least evidence of an answer
    text_floor: float  # the same where there are no vectors
    doubt: float  # what a doubtful question's floor is higher, where words do not speak for the answer
    spread: float  # of evidence over 0..1: similarity = 1 - exp(-evidence / spread)

    def background_of(self, query_vector: Sequence[float] | None) -> Background | None:
        """Once a question."""
        if query_vector is None or not self.background:
            return None
        cosines = sorted(sum(map(mul, query_vector, vector)) for vector in self.background)
        nearer = cosines[len(cosines) // 2 :]
        return Background(sum(cosines) / len(cosines), sum(nearer) / len(nearer))

    def evidence(self, candidate: Candidate, background: Background | None) -> Evidence:
        vector = 0.0
        if candidate.cosine is not None and background is not None:
            vector = _softplus(
                self.bias
                + self.above_mean * (candidate.cosine - background.mean)
                + self.above_nearest * (candidate.cosine - background.nearest)
            )
        text = _softplus(self.text_bias + self.text_coverage * candidate.coverage) if candidate.coverage > 0 else 0.0
        return Evidence(vector, text, self.name if candidate.name_match else 0.0)

    def similarity(self, evidence: float) -> float:
        return 1.0 - math.exp(-evidence / self.spread)

    def floor_of(self, background: Background | None) -> float:
        return self.text_floor if background is None else self.floor

    def answers(self, evidence: Evidence, background: Background | None, *, doubtful: bool = False) -> bool:
        """Whether the evidence is enough; for a doubtful question a vector alone has to say much."""
        alone = evidence.text + evidence.name < self.text_floor
        return evidence.total >= self.floor_of(background) + (self.doubt if doubtful and alone else 0.0)


def calibration_for(model_id: str) -> Calibration:
    """The measured calibration of a model; one that nobody measured has the text's alone, until `estimated` gives it a background."""
    return _calibrations().get(model_id) or _calibrations()[""]


def estimated(background: Sequence[Sequence[float]]) -> Calibration:
    """The calibration of an unmeasured model from its vectors of `background_texts`: the measured slopes, in units of their spread."""
    known = next(calibration for model, calibration in _calibrations().items() if model)
    scale = _spread_of(known.background) / max(1e-6, _spread_of(background))
    return replace(
        known,
        background=tuple(tuple(vector) for vector in background),
        above_mean=known.above_mean * scale,
        above_nearest=known.above_nearest * scale,
    )


def background_texts() -> list[str]:
    return list(_stored()["background"])


@lru_cache(maxsize=1)
def _calibrations() -> dict[str, Calibration]:
    stored = _stored()
    figures = {**stored["text"], "spread": stored["spread"]}
    unmeasured = Calibration(background=(), bias=0.0, above_mean=0.0, above_nearest=0.0, floor=figures["text_floor"], **figures)
    measured = {
        model: Calibration(background=_unpacked(entry["background"], entry["dimension"]), **entry["vector"], **figures)
        for model, entry in stored["models"].items()
    }
    return {"": unmeasured, **measured}


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(files(__package__).joinpath("data/calibration.json").read_text("utf-8"))
    return stored


def _unpacked(packed: str, dimension: int) -> tuple[tuple[float, ...], ...]:
    """Vectors stored as little-endian 16-bit integers, made unit vectors again."""
    values = array("h", b64decode(packed))
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(_unit(values[start : start + dimension]) for start in range(0, len(values), dimension))


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return tuple(value / length for value in vector)


def _spread_of(vectors: Sequence[Sequence[float]]) -> float:
    """Standard deviation of the cosines between different vectors."""
    cosines = [sum(map(mul, one, other)) for index, one in enumerate(vectors) for other in vectors[:index]]
    mean = sum(cosines) / len(cosines)
    return math.sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines))


def _softplus(value: float) -> float:
    return value if value > 30 else math.log1p(math.exp(value))
