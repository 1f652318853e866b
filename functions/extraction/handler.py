"""Learns from conversations that SQS says are due, and goes on with long operations."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import TypeAdapter
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.memory.extraction import GoOn, Wake

MESSAGES: TypeAdapter[Wake | GoOn] = TypeAdapter(Wake | GoOn)
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


MARGIN = timedelta(seconds=20)


def work(record: SQSRecord, lambda_context: LambdaContext) -> None:
    message = MESSAGES.validate_json(record.body)
    if isinstance(message, Wake):
        bootstrap.extraction().run(message)
    else:
        left = timedelta(milliseconds=lambda_context.get_remaining_time_in_millis())
        bootstrap.erasure().resume(message.tenant_id, message.operation_id, now() + left - MARGIN)


def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    return process_partial_response(event=event, record_handler=work, processor=processor, context=context)
