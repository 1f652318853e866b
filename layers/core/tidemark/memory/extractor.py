"""What turns messages into statements. The extraction service knows only this port; rules and a language model are its two kinds."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from tidemark.memory.model import SourceMessage, Statement
from tidemark.memory.rules.extract import extract_statements


class Extractor(Protocol):
    """`known` maps what persons are called to their names: roles of the user ("partner": "Mira") and the names themselves ("Bo": "Bo").
    `deadline` is the moment after which nobody waits for the statements any more."""

    def extract(self, messages: Sequence[SourceMessage], known: Mapping[str, str], deadline: datetime | None = None) -> list[Statement]: ...


class RuleExtractor:
    """Rules for English and Chinese: deterministic, without a model, and silent where they do not understand."""

    def extract(self, messages: Sequence[SourceMessage], known: Mapping[str, str], deadline: datetime | None = None) -> list[Statement]:
        return extract_statements(messages, known)
