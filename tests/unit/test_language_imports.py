"""The language parts are rules: importing them brings in no AWS library and no second interpreter's worth of time."""

import subprocess
import sys
from pathlib import Path

MODULES = (
    "tidemark.memory.explicit",
    "tidemark.memory.extractor",
    "tidemark.memory.model_extractor",
    "tidemark.models.offline",
    "tidemark.models.registry",
)
CORE = Path(__file__).parents[2] / "layers" / "core"


def test_language_parts_import_no_aws_library() -> None:
    heavy = {"boto3", "botocore", "pynamodb", "dateparser"}
    program = f"import sys, {', '.join(MODULES)}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(CORE)}, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
