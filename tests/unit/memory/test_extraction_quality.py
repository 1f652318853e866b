"""Precision and recall of the rules over labelled turns; `pytest -s` on this file prints what docs/quality.md quotes."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tidemark.memory.model import SourceMessage, Statement
from tidemark.memory.rules.extract import extract_statements

DATA = Path(__file__).parents[2] / "data"
AT = datetime(2024, 3, 13, 10, tzinfo=timezone(timedelta(hours=1)))


@dataclass
class Score:
    """Counts over turns; a statement below medium importance is stored by no default setting and counts as not given."""

    right: int = 0
    given: int = 0
    found: int = 0
    wanted: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.given

    @property
    def recall(self) -> float:
        return self.found / self.wanted


def fits(statement: Statement, wanted: dict[str, Any]) -> bool:
    """Whether a statement says what the label wants: its words, its polarity (closing a fact counts as denying it), its predicate."""
    said = json.dumps([statement.name, statement.description, statement.properties], ensure_ascii=False).casefold()
    polarity = statement.polarity == wanted["polarity"] or statement.ends
    exclusive = wanted.get("exclusive") in (None, statement.exclusive)
    return polarity and exclusive and all(word.casefold() in said for word in wanted["words"])


def measured(rows: Sequence[dict[str, Any]]) -> Score:
    score = Score()
    for row in rows:
        message = SourceMessage(id="m", conversation_id="c", role="user", content=row["text"], at=AT)
        given = [statement for statement in extract_statements([message]) if statement.importance != "low"]
        right = [statement for statement in given if any(fits(statement, wanted) for wanted in row["statements"])]
        missed = [wanted for wanted in row["statements"] if not any(fits(statement, wanted) for statement in given)]
        score.right += len(right)
        score.given += len(given)
        score.wanted += len(row["statements"])
        score.found += len(row["statements"]) - len(missed)
        if missed or len(right) < len(given):
            score.faults.append(f"{row['text']!r}: gave {[statement.name for statement in given]}, wanted {row['statements']}")
    return score


def rows(name: str, language: str) -> list[dict[str, Any]]:
    listed = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    return [row for row in listed if row["language"] == language]


SETS = ["extraction_labelled.jsonl", "extraction_held_out.jsonl", "extraction_fresh.jsonl", "extraction_third.jsonl"]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_rules_are_right_about_labelled_turns(name: str, language: str) -> None:
    score = measured(rows(name, language))
    sys.stdout.write(
        f"\n{language}: precision {score.precision:.3f} ({score.right}/{score.given}), recall {score.recall:.3f}"
        f" ({score.found}/{score.wanted})"
    )
    sys.stdout.writelines(f"  {fault}\n" for fault in score.faults)
    assert score.precision >= 0.95, score.faults
    assert score.recall >= 0.9, score.faults
