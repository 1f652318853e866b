"""`make run`: the whole service on this machine, from template.yaml, until Control-C."""

import argparse
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket

import httpx
import uvicorn

from infra.local import credentials, edge, local_tokens, opensearch, processes, streaming, tour
from infra.local.deploy import deploy
from infra.local.emulator_process import Emulator
from infra.local.environment import emulator_python
from infra.local.issuer import Issuer
from infra.local.progress import Failure, Progress
from infra.local.settings import ROOT, LocalSettings

LOG_LIMIT = 20 * 1024 * 1024


class Stopped(Exception):
    """Control-C or SIGTERM, wherever it arrives."""


def _stop(*_: object) -> None:
    # Once is enough: a second Control-C must not tear the shutdown itself.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def _prepare(settings: LocalSettings) -> None:
    for folder in ("logs", "emulator", "index"):
        (settings.state / folder).mkdir(parents=True, exist_ok=True)
    for name in ("emulator", "edge", "functions"):
        log = settings.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
    # Folders of workers that an earlier start left.
    shutil.rmtree(settings.state / "tmp", ignore_errors=True)
    (settings.state / "tmp").mkdir()


@contextmanager
def _served(settings: LocalSettings, taken: socket, application: object) -> Iterator[None]:
    log = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(message)s"}},
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(settings.logs / "edge.log"), "formatter": "plain"}},
        "loggers": {"uvicorn": {"handlers": ["file"], "level": "INFO", "propagate": False}},
    }
    server = uvicorn.Server(
        uvicorn.Config(
            application,  # type: ignore[arg-type]
            log_config=log,
            server_header=False,
            access_log=False,  # it would hold the words of searches; functions.log has a line for each request
            date_header=True,
            timeout_graceful_shutdown=3,
            lifespan="on",
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 15
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise Failure(f"The edge did not start; its log: {settings.logs / 'edge.log'}")
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def _emulated(settings: LocalSettings, progress: Progress) -> Iterator[Emulator]:
    emulator = Emulator(settings, emulator_python(progress))
    if emulator.end_leftover():
        progress.say("Ended an emulator that an earlier start had left behind")
    _prepare(settings)
    try:
        with progress.step("Starting the emulator"):
            emulator.start()
        yield emulator
    finally:
        progress.say("Stopping")
        emulator.stop()
        shutil.rmtree(settings.state / "tmp", ignore_errors=True)


@contextmanager
def _searching(settings: LocalSettings, progress: Progress) -> Iterator[None]:
    """With an OpenSearch of this machine where one is asked for and none is named."""
    if settings.parameters["Search"] != "opensearch" or settings.parameters["OpenSearchUrl"]:
        yield
        return
    if settings.parameters["OpenSearchEngine"] == "faiss":
        raise Failure(
            "The OpenSearch that is put together here lacks the native library of faiss and would end at the first vector: use the "
            "official image (docker compose -f infra/compose.yaml up -d) and name it with TIDEMARK_OPENSEARCH_URL."
        )
    with opensearch.for_this_run(os.environ, progress) as address:
        settings.parameters["OpenSearchUrl"] = address
        yield


def _run(settings: LocalSettings, progress: Progress) -> None:
    settings.state.mkdir(parents=True, exist_ok=True)
    with (
        processes.lock(settings.state / "lock"),
        processes.bind(settings.port) as taken,
        _searching(settings, progress),
        _emulated(settings, progress) as emulator,
    ):
        processes.record(settings.state / "instance.json", os.getpid())
        with progress.step("Deploying template.yaml"):
            outputs = deploy(settings, emulator)
            emulator.save()
        issuer = Issuer(settings.state / "issuer.pem", settings.parameters["OidcIssuer"], settings.parameters["OidcAudience"])
        local = local_tokens.routes(issuer, emulator.client("dynamodb"), outputs["TableName"])
        door = edge.Door()
        stage = f"{emulator.endpoint}/_aws/execute-api/{outputs['ApiId']}/api"
        with (
            streaming.process(settings, emulator) as stream,
            _served(settings, taken, edge.application(stage, settings.parameters["CorsOrigins"], local, stream, door)),
            httpx.Client(
                base_url=f"http://127.0.0.1:{settings.port}/api", timeout=60, trust_env=False, headers={door.HEADER: door.key}
            ) as client,
        ):
            _open(settings, progress, issuer, client, door)
            while not emulator.died():
                time.sleep(0.5)
            raise Failure(f"The emulator ended; its log: {settings.logs / 'emulator.log'}. The next start goes on from its state.")


def _open(settings: LocalSettings, progress: Progress, issuer: Issuer, client: httpx.Client, door: edge.Door) -> None:
    with progress.step("Waking the functions and opening the tenant"):
        if not (health := client.get("/health")).is_success:
            raise Failure(f"GET /api/health answered {health.status_code}; the functions' log: {settings.logs / 'functions.log'}")
        made = credentials.prepare(settings.credentials, settings.base_url, issuer, client)
        door.is_open = True
    shown = settings.credentials
    with suppress(ValueError):
        shown = shown.relative_to(Path.cwd())
    if settings.tour:
        tour.show(made, str(shown), client)
    progress.say(f"Tidemark is ready: {settings.base_url}")
    print(f"           console:     http://localhost:{settings.port}/console\n           credentials: {shown}")
    print(f"           logs:        {shown.parent / 'logs'}\n           Control-C stops it; its data stays.", flush=True)


def _end(settings: LocalSettings) -> None:
    if not processes.end_leftover(settings.state / "instance.json", "infra.local", patience=60):
        raise Failure(f"Nothing runs on {settings.state}.")
    print("Stopped; its data stays.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="The whole service on this machine.")
    parser.add_argument("action", nargs="?", choices=("run", "stop"), default="run")
    parser.add_argument("--source", type=Path, default=ROOT, help="where template.yaml, functions/ and layers/ are")
    return parser.parse_args()


def main() -> int:
    arguments, progress = _arguments(), Progress()
    # Python's own HTTP clients here speak to this machine only.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "localhost,127.0.0.1")))
    try:
        settings = LocalSettings.read(os.environ, interactive=sys.stdin.isatty(), source=arguments.source.resolve())
        if arguments.action == "stop":
            _end(settings)
            return 0
        signal.signal(signal.SIGINT, _stop)
        signal.signal(signal.SIGTERM, _stop)
        _run(settings, progress)
    except Stopped:
        progress.say("Stopped")
    except (Failure, SyntaxError) as failure:
        print(f"\nTidemark stopped: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
