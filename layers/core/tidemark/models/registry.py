"""What is known of each model: its window, the most it answers, and how its tokenizer compares with ours."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEFAULT_WINDOW = 32_000
OFFLINE_MODEL_ID = "offline-extractive"
DATA = Path(__file__).with_name("data") / "models.json"
# Bedrock's cross-region inference profiles put the region in front of the model's own id.
REGION = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.")
# A dated snapshot of an OpenAI model has the figures of its alias.
SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$|-latest$")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`factor` turns o200k_base tokens into an upper estimate of the model's own. `known` is false for an unlisted id."""

    id: str
    context_window: int = DEFAULT_WINDOW
    max_output_tokens: int | None = None
    factor: float = 1.0
    known: bool = False


@cache
def _models() -> dict[str, ModelInfo]:
    listed = json.loads(DATA.read_text(encoding="utf-8"))
    return {model_id: ModelInfo(model_id, known=True, **figures) for model_id, figures in listed.items()}


def lookup(model_id: str) -> ModelInfo:
    """The model's figures under its own id; Clouisle's defaults where nobody listed it."""
    plain = REGION.sub("", model_id.rsplit("/", 1)[-1])
    for candidate in (model_id, plain, SNAPSHOT.sub("", plain)):
        found = _models().get(candidate)
        if found:
            return ModelInfo(model_id, found.context_window, found.max_output_tokens, found.factor, known=True)
    return ModelInfo(model_id)


def known_models() -> tuple[str, ...]:
    """The listed ids, in the order of the data file."""
    return tuple(_models())
