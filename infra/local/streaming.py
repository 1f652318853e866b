"""The streaming function inside the edge's own process, with the environment and the layers that the others have."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from tidemark import bootstrap
from tidemark.observability import logger
from tidemark.tenancy.caller import Caller

from functions.chat_stream.app import ChatStream
from infra.local.edge import Stream
from infra.local.emulator_process import Emulator
from infra.local.settings import REGION, LocalSettings

FUNCTION = "ChatStreamFunction"


@contextmanager
def process(settings: LocalSettings, emulator: Emulator) -> Iterator[Stream]:
    """Answers requests for events. Its log lines go where those of the functions go."""
    os.environ.update(_environment(emulator))
    with (settings.logs / "functions.log").open("a", encoding="utf-8") as log:
        for handler in logging.getLogger(logger.name or "tidemark").handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(log)
        # Clients are made here and not by the first requests, several of which may come at once.
        bootstrap.completions()
        bootstrap.idempotency()
        yield ChatStream(_caller).answer


def _caller(request: Request) -> Caller:
    """The gateway's authorizer is not on this way, so its work is done here. Raises UnauthorizedError."""
    return bootstrap.authentication().caller(request.headers.get("authorization", ""))


def _environment(emulator: Emulator) -> dict[str, str]:
    name = emulator.client("cloudformation").describe_stack_resource(StackName="tidemark", LogicalResourceId=FUNCTION)
    function = name["StackResourceDetail"]["PhysicalResourceId"]
    found: dict[str, str] = emulator.client("lambda").get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    return found | {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "OMP_NUM_THREADS": "1",
    }
