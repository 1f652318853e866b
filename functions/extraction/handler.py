"""Background work from the queue: extraction that is due, vectors that are missing, long operations that go on."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import TypeAdapter
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.work import Embed, GoOn, Wake

MESSAGES: TypeAdapter[Wake | GoOn | Embed] = TypeAdapter(Wake | GoOn | Embed)
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


MARGIN = timedelta(seconds=20)  # to store what was learned, or that it failed


def work(record: SQSRecord, lambda_context: LambdaContext) -> None:
    message = MESSAGES.validate_json(record.body)
    deadline = now() + timedelta(milliseconds=lambda_context.get_remaining_time_in_millis()) - MARGIN
    if isinstance(message, Wake):
        bootstrap.extraction().run(message, deadline)
    elif isinstance(message, Embed):
        bootstrap.stream_indexer().embed(message)
    else:
        bootstrap.erasure().resume(message.tenant_id, message.operation_id, deadline)


def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    return process_partial_response(event=event, record_handler=work, processor=processor, context=context)
