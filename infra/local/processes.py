"""Child processes and ports: recorded, recognised, and ended only when they are ours."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx

from infra.local.progress import Failure


def bind(port: int) -> socket.socket:
    """Take the port now, so that a taken one is told before anything else has started."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", port))
        # Without a listener SO_REUSEADDR would let a second instance bind as well.
        taken.listen(128)
    except OSError as error:
        taken.close()
        raise Failure(f"Port {port} is taken ({error.strerror}). Stop what listens there, or set TIDEMARK_PORT to a free port.") from error
    return taken


def free_port(preferred: int | None) -> int:
    """The port of last time where it is free: queue addresses in the persisted state name it."""
    for candidate in (preferred or 0, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise Failure("No free port was found on 127.0.0.1.")


def lock(path: Path, *, wait: bool = False) -> IO[str]:
    """One holder a file. The lock goes with the process, however it ends."""
    held = path.open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        held.close()
        raise Failure(f"Another instance runs on {path.parent}. Stop it, or set TIDEMARK_STATE_DIR to another directory.") from error
    return held


def command_of(pid: int) -> str:
    """The command line of a process, empty when it is gone."""
    proc = Path(f"/proc/{pid}/cmdline")
    if proc.exists():
        return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()


def record(path: Path, pid: int, **more: Any) -> None:
    path.write_text(json.dumps({"pid": pid, **more}))


def recorded(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def end_leftover(path: Path, mark: str, patience: float = 10.0) -> bool:
    """End what an earlier start left behind. `mark` must stand in its command line, for numbers of processes are used again.

    It is given time first: an emulator whose parent was killed notices, saves and leaves by itself.
    """
    pid = recorded(path).get("pid")
    if not isinstance(pid, int) or mark not in command_of(pid):
        return False
    deadline = time.monotonic() + patience
    os.kill(pid, signal.SIGTERM)
    while mark in command_of(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.05)
    return True


def answers(url: str, seconds: float, died: Callable[[], bool], *, patience: float = 2) -> bool:
    """Waits until a server that was just started answers well; false when it died or the time is over. `patience`: seconds for one try."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not died():
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=patience, trust_env=False).is_success:
                return True
        time.sleep(0.05)
    return False


def stop(process: subprocess.Popen[bytes], patience: float = 20.0) -> None:
    """The end of its standard input asks the process to leave."""
    if process.poll() is not None:
        return
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
