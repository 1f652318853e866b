"""Runs one benchmark, or lists them: `python -m tests.bench [NAME [ARGUMENTS]]`."""

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def benches() -> dict[str, str]:
    """Names and what they measure, in a line each."""
    found = {}
    for file in sorted(HERE.glob("*.py")):
        said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        if not file.name.startswith("_") and said:
            found[file.stem] = said.splitlines()[0]
    return found


def main() -> None:
    known = benches()
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in known:
        sys.path[:0] = [str(HERE.parents[1] / "layers" / "core"), str(HERE.parents[1])]
        sys.argv = sys.argv[1:]
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
        return
    print("python -m tests.bench NAME [ARGUMENTS]\n")
    for one, said in known.items():
        print(f"  {one:16} {said}")
    print("\nFigures and commands: docs/quality.md. Data outside the repository is an argument; without it a run is skipped.")
    if name:
        raise SystemExit(f"\nThere is no {name!r}.")


if __name__ == "__main__":
    main()
