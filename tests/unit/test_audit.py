"""What CI says of vulnerabilities and secrets."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra import audit

FLAW = {"id": "PYSEC-1", "fix_versions": ["2.0"]}


def saying(monkeypatch: pytest.MonkeyPatch, **answers: tuple[Any, str]) -> None:
    """pip-audit with an answer (packages or None, stderr) for each service."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        packages, error = answers[arguments[arguments.index("--vulnerability-service") + 1]]
        text = "" if packages is None else json.dumps({"dependencies": packages})
        return subprocess.CompletedProcess([program], 1, text, error)

    monkeypatch.setattr(audit, "run", run)


KNOWN = {"name": "a", "version": "1.0", "vulns": []}
BAD = {"name": "a", "version": "1.0", "vulns": [FLAW]}
UNKNOWN = {"name": "a", "skip_reason": "not found"}
AWAY = (None, "requests.exceptions.ProxyError: Max retries exceeded")


@pytest.mark.parametrize(
    ("pypi", "osv", "code", "told"),
    [
        (([KNOWN], ""), AWAY, 0, "pypi: 1 of 1"),
        (([KNOWN, BAD], ""), AWAY, 1, "a 1.0: PYSEC-1, fixed in 2.0"),
        (([UNKNOWN], ""), ([BAD], ""), 1, "osv: 1 of 1"),
        (AWAY, AWAY, 0, "NOT AUDITED"),
        (([UNKNOWN], ""), AWAY, 0, "NOT AUDITED"),
    ],
)
def test_only_a_found_vulnerability_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pypi: Any, osv: Any, code: int, told: str
) -> None:
    saying(monkeypatch, pypi=pypi, osv=osv)
    assert audit.dependencies() == code
    assert told in capsys.readouterr().out


def test_a_failure_that_is_no_missing_network_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    saying(monkeypatch, pypi=(None, "invalid requirement"), osv=AWAY)
    with pytest.raises(RuntimeError, match="invalid requirement"):
        audit.dependencies()


def test_a_secret_in_a_file_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, leaky = tmp_path / "clean.py", tmp_path / "leaky.py"
    clean.write_text("answer = 42\n", encoding="utf-8")
    leaky.write_text('key = "AKIA' + "QWERTY1234567890" + '"\n', encoding="utf-8")
    assert audit.secrets([str(clean)]) == 0
    assert audit.secrets([str(clean), str(leaky)]) == 1
    assert "leaky.py" in capsys.readouterr().out
