"""Logs, metrics and traces. Ids, counts and durations only: never a header, a body, or what was said."""

from aws_lambda_powertools import Logger, Metrics

logger = Logger(service="tidemark", log_uncaught_exceptions=False)
metrics = Metrics(namespace="Tidemark", service="tidemark")


def where(exc: BaseException) -> list[str]:
    """The places of an exception's traceback. Its message is left out, since it may hold what a user said."""
    places: list[str] = []
    trace = exc.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-12:]
