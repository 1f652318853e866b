"""Corrections of how the emulator runs functions. They name private parts of it, which the pinned version keeps in place."""

import functools
import os
import threading
from collections import defaultdict
from typing import Any

# The emulator starts a worker for every concurrent call; on a laptop a burst would start more than it has cores or memory for.
AT_ONCE = max(6, 3 * (os.cpu_count() or 1))

_REPORTED = '{"status": "error", "error": str(e), "trace": traceback.format_exc()}'
_RAISED = '{"status": "ok", "result": {"__raised__": str(e), "type": type(e).__name__, "trace": traceback.format_exc()}}'


def correct(functions: Any, runtime: Any) -> None:
    # A worker survives its handler's exception, as in AWS; otherwise every refused token would cost the authorizer a cold start.
    script = runtime._PYTHON_WORKER_SCRIPT
    if _REPORTED not in script:
        raise RuntimeError("this version of the emulator runs functions in another way")
    runtime._PYTHON_WORKER_SCRIPT = script.replace(_REPORTED, _RAISED)
    # 50 ms of waiting for a log line after every call that wrote none; a late line is logged with the next call.
    runtime.Worker._drain_stderr_bounded = functools.partialmethod(
        runtime.Worker._drain_stderr_bounded, first_line_wait=0.002, idle_confirm=0.002
    )
    execute, free = functions._execute_function_warm, defaultdict[str, threading.Semaphore](lambda: threading.Semaphore(AT_ONCE))

    def execute_warm(func: dict[str, Any], event: Any, request_id: str) -> dict[str, Any]:
        with free[(func.get("config") or func)["FunctionName"]]:
            result: dict[str, Any] = execute(func, event, request_id)
        raised = result.get("body")
        if not isinstance(raised, dict) or "__raised__" not in raised:
            return result
        log = "\n".join(filter(None, (result.get("log"), raised["trace"])))
        return {"body": {"errorMessage": raised["__raised__"], "errorType": raised["type"]}, "error": True, "log": log}

    functions._execute_function_warm = execute_warm
