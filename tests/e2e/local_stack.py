"""The local stack as a process of its own, as a person starts it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "infra.local"]
# The first start on a machine installs the emulator.
START_SECONDS = 180


def wait_until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """The condition's first true value."""
    deadline = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds} s: {condition}")
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Stack:
    """One running instance."""

    port: int
    state: Path
    process: subprocess.Popen[bytes]

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/api"

    @property
    def output(self) -> str:
        return (self.state / "output.txt").read_text()

    @property
    def credentials(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.state / "credentials.json").read_text())
        return found

    def client(self, credential: str | None = "api_key") -> httpx.Client:
        """A client that holds one of the credentials, or none."""
        headers = {"Authorization": f"Bearer {self.credentials[credential]}"} if credential else {}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60, trust_env=False)

    def dashboard_token(self, **wanted: Any) -> str:
        answer = httpx.post(f"{self.origin}/local/tokens", json=wanted, trust_env=False)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def kill_emulator(self) -> None:
        os.kill(json.loads((self.state / "emulator.json").read_text())["pid"], signal.SIGKILL)


def launch(state: Path, port: int, **environment: str) -> subprocess.Popen[bytes]:
    state.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    with (state / "output.txt").open("wb") as output:
        return subprocess.Popen(  # noqa: S603
            COMMAND,
            cwd=ROOT,
            env=kept | {"TIDEMARK_PORT": str(port), "TIDEMARK_STATE_DIR": str(state), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def start(state: Path, port: int | None = None, **environment: str) -> Stack:
    port = port or free_port()
    stack = Stack(port, state, launch(state, port, **environment))

    def ready() -> bool:
        assert stack.process.poll() is None, stack.output
        return "Tidemark is ready" in stack.output

    try:
        wait_until(ready, START_SECONDS)
    except AssertionError:
        stack.process.kill()
        raise
    return stack
