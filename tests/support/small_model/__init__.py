"""A small language model behind an OpenAI-compatible server, installed on first use."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local import processes
from infra.local.environment import environment
from infra.local.progress import Progress

HERE = Path(__file__).parent
START_SECONDS = 120


@contextmanager
def serving(folder: Path, window: int) -> Iterator[str]:
    """The server's base URL. Raises infra.local.progress.Failure where the model cannot be fetched; its log goes to `folder`."""
    python = environment("small-model", HERE / "requirements.txt", Progress(), "--no-deps")
    port = processes.free_port(None)
    with (folder / "model.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603
            [str(python), str(HERE / "server.py"), str(port), str(window)],
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}/v1"
            started = processes.answers(f"{url}/models", START_SECONDS, lambda: process.poll() is not None)
            assert started, (folder / "model.log").read_text(errors="replace")
            yield url
        finally:
            process.terminate()
            process.wait(20)
