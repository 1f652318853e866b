"""Learns from conversations that SQS says are due."""

from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from tidemark import bootstrap
from tidemark.memory.extraction import Wake

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


def work(record: SQSRecord) -> None:
    bootstrap.extraction().run(Wake.model_validate_json(record.body))


def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    return process_partial_response(event=event, record_handler=work, processor=processor, context=context)
