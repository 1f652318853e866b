"""What was told to CloudWatch: the figures in the log's lines of embedded metric format."""

import json

import pytest


def told(capsys: pytest.CaptureFixture[str], name: str) -> list[float]:
    """Every value of a metric since the last call."""
    values: list[float] = []
    for line in capsys.readouterr().out.splitlines():
        found = json.loads(line) if line.startswith("{") and '"_aws"' in line else {}
        value = found.get(name, [])
        values += value if isinstance(value, list) else [value]
    return values
