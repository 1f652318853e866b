"""What CI asks of dependencies and of the repository's own text: `python -m infra.audit dependencies` and `python -m infra.audit secrets`.

Both exit with 1 for a finding only. A service with known vulnerabilities that cannot be reached is said, not failed: a laptop without
network, or one behind a mirror, can still check everything else.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "layers/dependencies/requirements.txt"  # all that is deployed, with hashes
SERVICES = ("pypi", "osv")
UNREACHABLE = ("requests.exceptions", "ConnectionError", "Max retries exceeded", "ServiceError")
BASELINE = ROOT / ".ci/secrets.baseline"
# Files of hashes and of vocabulary, in which every line looks like a key.
NO_SECRETS = ("uv.lock", "o200k_base.tiktoken", "requirements.txt", "secrets.baseline")


@dataclass(frozen=True)
class Report:
    """What a service said: how many packages it knows, and its findings, one line each."""

    known: int
    total: int
    findings: list[str]


def read(report: Any) -> Report:
    """pip-audit's JSON. A package that the service does not know has `skip_reason`."""
    packages = report["dependencies"]
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for one in packages
        for flaw in one.get("vulns", [])
    ]
    return Report(sum("skip_reason" not in one for one in packages), len(packages), found)


def ask(service: str) -> Report | None:
    """None where the service cannot be reached. Raises RuntimeError for any other failure."""
    done = run("pip-audit", "--vulnerability-service", service, "--requirement", str(REQUIREMENTS), "--disable-pip", "--require-hashes",
               "--format", "json", "--progress-spinner", "off", "--timeout", "15")  # fmt: skip
    if done.stdout.strip():
        return read(json.loads(done.stdout))
    if any(sign in done.stderr for sign in UNREACHABLE):
        return None
    raise RuntimeError(done.stderr[-2000:])


def dependencies() -> int:
    for service in SERVICES:
        report = ask(service)
        if report is not None and report.known:
            print(f"{service}: {report.known} of {report.total} packages are known there, {len(report.findings)} vulnerabilities")
            print("\n".join(report.findings))
            return 1 if report.findings else 0
        print(f"{service}: its data cannot be reached from here")
    print("NOT AUDITED: no service with known vulnerabilities can be reached; run this where there is a network")
    return 0


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in listed if name and not name.endswith(NO_SECRETS) and (ROOT / name).is_file()]


def secrets(files: Sequence[str] | None = None) -> int:
    chosen = tracked() if files is None else files
    with tempfile.TemporaryDirectory() as folder:
        # A copy: the hook writes line numbers that have moved into the baseline that it is given.
        baseline = Path(folder) / "baseline"
        baseline.write_bytes(BASELINE.read_bytes())
        done = run("detect-secrets-hook", "--no-verify", "--baseline", str(baseline), *chosen)
    moved = 3
    if done.returncode in (0, moved):
        print(f"{len(chosen)} files hold no secret that {BASELINE.relative_to(ROOT)} does not know")
        return 0
    print(done.stdout[-20_000:], done.stderr[-2000:])
    print("An invented one, for a test or an example, is marked `pragma: allowlist secret` on its line.")
    return 1


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).with_name(program)
    return subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("dependencies", "secrets"))
    return {"dependencies": dependencies, "secrets": secrets}[parser.parse_args(arguments).what]()


if __name__ == "__main__":
    sys.exit(main())
