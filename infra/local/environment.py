"""Virtual environments of tools that must not share ours: the emulator's first of all."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from infra.local.processes import lock
from infra.local.progress import Failure, Progress
from infra.local.settings import ROOT

REQUIREMENTS = Path(__file__).parent / "emulator" / "requirements.txt"


def _uv() -> list[str]:
    beside = Path(sys.executable).parent / "uv"
    found = shutil.which("uv") or (str(beside) if beside.exists() else None)
    bundled = ROOT / ".local" / "tools" / "bin" / "uv"  # where the Makefile puts it
    if found is None and bundled.exists():
        found = str(bundled)
    if found is None:
        raise Failure("uv is missing. `make run` installs it; or: pip install uv")
    return [found]


def environment(name: str, requirements: Path, progress: Progress, *options: str) -> Path:
    """The Python of a virtual environment below .local/tools, made once for these requirements and this Python; `options` go to
    `uv pip install`. Raises Failure where something cannot be fetched."""
    key = hashlib.sha256(requirements.read_bytes() + sys.version.encode() + sys.base_prefix.encode()).hexdigest()[:12]
    home = ROOT / ".local" / "tools" / name / key
    python = home / "bin" / "python"
    complete = home / ".complete"
    if complete.exists():
        return python
    home.parent.mkdir(parents=True, exist_ok=True)
    with lock(home.parent / f"{key}.lock", wait=True), progress.step(f"Installing the {name.replace('-', ' ')}"):
        if complete.exists():
            return python
        uv = _uv()
        for command in (
            [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)],
            [*uv, "pip", "install", "--quiet", "--compile-bytecode", *options, "--python", str(python), "-r", str(requirements)],
        ):
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Failure(f"The {name.replace('-', ' ')} could not be installed: {' '.join(command[1:3])} said:\n{ran.stderr.strip()}")
        complete.touch()
    return python


def emulator_python(progress: Progress) -> Path:
    """Shared by all instances. Its Python is ours, because the functions import our compiled packages from there."""
    return environment("emulator", REQUIREMENTS, progress)
