"""Brings what changed in the table to the search index."""

from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBStreamEvent
from aws_lambda_powertools.utilities.typing import LambdaContext
from tidemark import bootstrap
from tidemark.memory.stream import Event


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """The stream goes on from the record that is named as failed."""
    events: list[Event] = []
    for record in DynamoDBStreamEvent(event).records:
        change = record.dynamodb
        if change is not None:
            created = change.approximate_creation_date_time
            written = datetime.fromtimestamp(created, UTC) if created is not None else None
            events.append(Event(change.sequence_number or "", change.old_image or None, change.new_image or None, written))
    failed = bootstrap.stream_indexer().apply(events)
    return {"batchItemFailures": [{"itemIdentifier": failed}] if failed else []}
