"""The one queue of background work, and what its messages say. They carry ids, never content."""

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import boto3
from pydantic import BaseModel, ConfigDict

from tidemark.clock import Time

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MOST_DELAY_SECONDS = 900  # of an SQS message; what is due later is the sweeper's

Trigger = Literal["pending_limit", "cooldown", "sweep", "manual"]


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant_id: str


class Wake(Message):
    """A conversation may be due for extraction. `due` is the time that it had when this was sent: a later one makes this stale."""

    conversation_id: str
    trigger: Trigger
    due: Time | None = None
    job_id: str | None = None


class GoOn(Message):
    """An operation that was too long for one call."""

    operation_id: str


class Embed(Message):
    """Messages that are in the index by their words and still lack their vectors."""

    conversation_id: str
    message_ids: list[str]


class WorkQueue:
    def __init__(self, url: str) -> None:
        self._url = url

    @cached_property
    def _sqs(self) -> "SQSClient":
        return boto3.client("sqs")

    def send(self, message: Message, delay_seconds: int = 0) -> None:
        delay = max(0, min(MOST_DELAY_SECONDS, delay_seconds))
        self._sqs.send_message(QueueUrl=self._url, MessageBody=message.model_dump_json(), DelaySeconds=delay)
