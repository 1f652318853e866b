"""Every minute: finds the conversations whose extraction is overdue, whatever became of their messages, and mends a part of the index."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.observability import logger

MOST = 500  # a run; the next one goes on


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    woken = bootstrap.extraction().sweep(now(), MOST)
    repaired = bootstrap.drift().check()
    logger.info("swept", woken=woken, repaired=repaired)
    return {"woken": woken, "repaired": repaired}
