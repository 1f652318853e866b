"""Logs, metrics and traces. Ids, counts and durations only: never a header, a body, or what was said."""

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

NAMESPACE = "Tidemark"
SERVICE = "tidemark"

logger = Logger(service=SERVICE, log_uncaught_exceptions=False)


def measure(name: str, value: float = 1, unit: MetricUnit = MetricUnit.Count) -> None:
    """Tells CloudWatch one figure, in a line of the log (EMF), at once: there is nothing to flush at the end of a request, which every
    handler and thread would have to remember, and nothing that requests of one process share."""
    with single_metric(name=name, unit=unit, value=value, namespace=NAMESPACE) as metric:
        metric.add_dimension(name="service", value=SERVICE)


def where(exc: BaseException) -> list[str]:
    """The places of an exception's traceback. Its message is left out, since it may hold what a user said."""
    places: list[str] = []
    trace = exc.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-12:]
