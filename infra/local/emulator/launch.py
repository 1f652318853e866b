"""The emulator's process: ministack with durable writes, readable function logs, and an end that follows its parent's.

Run as `python -m infra.local.emulator.launch STATE_DIR` by the emulator's own Python, with the parent holding its standard input.
"""

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.local.emulator import workers
from infra.local.emulator.journal import Journal

QUEUE_SAVE_SECONDS = 0.5


def _leave_with_parent(app: Any, leave: Callable[[], None]) -> None:
    """Standard input ends when the parent wants us to go, and when it is gone itself, even by SIGKILL: nothing stays behind."""
    while os.read(0, 4096):
        pass
    if app._MAIN_LOOP is None:
        os._exit(0)
    app._MAIN_LOOP.call_soon_threadsafe(leave)


def _save_queues(sqs: Any, persistence: Any) -> None:
    """Queues are small and change in too many places to journal; a moment's loss is made good by the sweeper."""
    seen: Any = None
    while True:
        time.sleep(QUEUE_SAVE_SECONDS)
        try:
            state = sqs.get_state()
            now = [(url, [(m["id"], m["receive_count"], m["visible_at"]) for m in q["messages"]]) for url, q in sqs._queues._data.items()]
            if now != seen:
                persistence.save_state("sqs", state)
                seen = now
        except RuntimeError:
            continue  # a request changed a queue while it was copied


def _release_messages(sqs: Any) -> None:
    """Whoever had received a message before the restart is gone; it need not wait for its visibility to end."""
    for queue in sqs._queues._data.values():
        for message in queue["messages"]:
            if message.get("receive_count"):
                message["visible_at"] = min(message["visible_at"], time.time())


def _keep_short(journal: Journal, app: Any, save: Callable[[], None]) -> None:
    while True:
        time.sleep(10)
        if journal.is_long() and app._MAIN_LOOP is not None:
            app._MAIN_LOOP.call_soon_threadsafe(save)


def _log_functions(functions: Any, path: Path) -> None:
    lock = threading.Lock()

    def emit(func: dict[str, Any], request_id: str, text: str, error: bool, duration: int, **_: Any) -> None:
        name = (func.get("config") or func).get("FunctionName", "?")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = f"{stamp} {name} {request_id} {'FAILED' if error else 'ok'} {duration} ms\n"
        with lock, path.open("a", encoding="utf-8", errors="replace") as log:
            log.write(head + (text.rstrip("\n") + "\n" if text else ""))

    functions._emit_lambda_logs = emit


def main() -> None:
    state = Path(sys.argv[1])
    app: Any = importlib.import_module("ministack.app")
    persistence: Any = importlib.import_module("ministack.core.persistence")
    dynamodb, sqs, functions = (importlib.import_module(f"ministack.services.{name}") for name in ("dynamodb", "sqs", "lambda_svc"))
    journal = Journal(state / "emulator" / "journal.jsonl", dynamodb, functions)
    runtime = importlib.import_module("ministack.core.lambda_runtime")
    workers.correct(functions, runtime)
    _log_functions(functions, state / "logs" / "functions.log")
    load, save_all = app._load_persisted_state, app.save_all
    loaded = threading.Event()

    def load_everything() -> None:
        load()
        _release_messages(sqs)
        journal.replay()
        loaded.set()
        # only now: before, it would have saved the queues of an emulator that has not read its own
        threading.Thread(target=_save_queues, args=(sqs, persistence), daemon=True).start()

    def save_everything(services: Any) -> None:
        if not loaded.is_set():
            return  # an end in the middle of the start must not write what was not read yet
        save_all(services)
        journal.restart()

    def save() -> None:
        save_everything(app._build_persistence_save_dict())

    def leave() -> None:
        save()
        runtime.kill_workers([worker for pool in list(runtime._workers.values()) for worker in pool])
        # Not through the server's own shutdown, which waits for calls in flight; what they wrote is in the tables or the journal.
        os._exit(0)

    app._load_persisted_state = load_everything
    app.save_all = save_everything
    # After a deployment, so that functions and routes survive a crash as the tables do.
    signal.signal(signal.SIGUSR1, lambda *_: app._MAIN_LOOP.call_soon_threadsafe(save))
    threading.Thread(target=_leave_with_parent, args=(app, leave), daemon=True).start()
    threading.Thread(target=_keep_short, args=(journal, app, save), daemon=True).start()
    sys.argv = ["ministack"]
    app.main()


if __name__ == "__main__":
    main()
