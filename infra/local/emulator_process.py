"""Starts the emulator and speaks to it."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3

from infra.local import processes
from infra.local.progress import Failure
from infra.local.settings import REGION, ROOT, LocalSettings

MARK = "infra.local.emulator.launch"


def _worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the emulator and so its workers inherit: nothing that points at other Pythons, accounts or proxies."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("PYTHON", "AWS_", "VIRTUAL_ENV", "TIDEMARK_"))}
    kept |= {name: f"{kept[name]},localhost,127.0.0.1" if kept.get(name) else "localhost,127.0.0.1" for name in ("NO_PROXY", "no_proxy")}
    # One thread a worker: vectors are computed three times slower where OpenMP threads compete.
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class Emulator:
    def __init__(self, settings: LocalSettings, python: Path) -> None:
        self._settings = settings
        self._python = python
        self._record = settings.state / "emulator.json"
        self._log = settings.logs / "emulator.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        state = self._settings.state
        self.port = processes.free_port(processes.recorded(self._record).get("port"))
        environ = _worker_environment(os.environ) | {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "localhost",
            "MINISTACK_REGION": REGION,
            "PERSIST_STATE": "1",
            "STATE_DIR": str(state / "emulator"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(state / "emulator" / "s3"),
            "TMPDIR": str(state / "tmp"),
            "LOG_LEVEL": "WARNING",
            "LAMBDA_WARM_TTL_SECONDS": "120",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-m", MARK, str(state)],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Control-C reaches only us; the emulator is stopped in order, after the edge.
                start_new_session=True,
            )
        processes.record(self._record, self._process.pid, port=self.port)
        if not processes.answers(f"{self.endpoint}/_ministack/health", 60, self.died):
            raise Failure(f"The emulator did not start; its log: {self._log}")

    def end_leftover(self) -> bool:
        return processes.end_leftover(self._record, f"{MARK} {self._settings.state}")

    def save(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        if self._process:
            processes.stop(self._process)
            # Workers leave when their input ends, but not before the call they are in.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def died(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def client(self, service: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106
        )
