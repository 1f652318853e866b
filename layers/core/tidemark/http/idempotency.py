"""Idempotency-Key: the same key and request give the stored answer (Powertools keeps the records in DynamoDB)."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from aws_lambda_powertools.utilities.idempotency.serialization.base import BaseIdempotencySerializer
from aws_lambda_powertools.utilities.typing import LambdaContext

from tidemark.errors import ConflictError, ForbiddenError, InvalidError
from tidemark.privacy import traces
from tidemark.storage.blobs import Blobs

KEPT_SECONDS = 24 * 3600
PREFIX = "http"
ITEM_BYTES = 300_000  # of an answer's body; an item holds 400 KB
METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))

Proxy = dict[str, Any]  # an answer as API Gateway takes it


class _NotStored(Exception):
    """Carries an answer that is not kept, so that the same key may be used again."""

    def __init__(self, answer: Proxy) -> None:
        super().__init__("not stored")
        self.answer = answer


class _Answers(BaseIdempotencySerializer):
    """What is kept of an answer: all of it and the rights of its caller, but never an API key's secret. What is too large for an item lies
    in the bucket."""

    def __init__(self, blobs: Blobs, blob_key: str, rights: frozenset[str]) -> None:
        self._blobs, self._blob_key, self._rights = blobs, blob_key, rights

    def to_dict(self, data: Proxy) -> Proxy:
        return {**self._kept(data), "rights": sorted(self._rights)}

    def _kept(self, data: Proxy) -> Proxy:
        text = str(data.get("body") or "")
        if len(text.encode()) > ITEM_BYTES:
            self._blobs.put(self._blob_key, text, short_lived=True)
            return {**data, "body": "", "blob": self._blob_key}
        body = json.loads(text) if text else None
        if isinstance(body, dict) and str(body.get("id", "")).startswith("key_") and "secret" in body:
            return {**data, "body": json.dumps({**body, "secret": None})}
        return data

    def from_dict(self, data: Proxy) -> Proxy:
        """Raises ForbiddenError for a caller with fewer rights than the answer was given to: the checks of the route do not run again."""
        if not self._rights >= set(data["rights"]):
            raise ForbiddenError("This Idempotency-Key was answered to a caller with more rights.", code="insufficient_scope")
        answer = {name: value for name, value in data.items() if name not in ("blob", "rights")}
        return {**answer, "body": self._blobs.get(data["blob"])} if "blob" in data else answer


def _mark_replayed(response: Proxy, idempotent_data: DataRecord) -> Proxy:
    return {**response, "multiValueHeaders": {**response.get("multiValueHeaders", {}), "Idempotency-Replayed": ["true"]}}


def _config(context: LambdaContext | None = None) -> IdempotencyConfig:
    return IdempotencyConfig(
        event_key_jmespath="key",
        payload_validation_jmespath="request",
        expires_after_seconds=KEPT_SECONDS,
        hash_function="sha256",
        response_hook=_mark_replayed,
        lambda_context=context,
    )


class Idempotency:
    def __init__(self, table_name: str, blobs: Blobs) -> None:
        self._layer, self._blobs = DynamoDBPersistenceLayer(table_name=table_name), blobs
        # Now, not with the first request: two of them at once would find it half made.
        self._layer.configure(_config(), key_prefix=PREFIX)

    def run(
        self,
        owner: str,
        rights: frozenset[str],
        event: dict[str, Any],
        context: LambdaContext,
        serve: Callable[[], Proxy],
        partition: Callable[[], str | None] = lambda: None,
    ) -> Proxy:
        """Serves a request, or answers what the same key was answered before.

        `owner` is whose keys these are (a tenant), `rights` what the caller may; `partition` tells where a trace of the stored answer is
        left for its erasure. Raises InvalidError for a key that was used for another request, ConflictError for one that is still
        running, ForbiddenError for one that was answered to a caller with more rights.
        """
        key = _key(event)
        if key is None or event["httpMethod"] not in METHODS:
            return serve()

        home, record = partition(), record_id(owner, key)

        def once(what: dict[str, Any]) -> Proxy:
            with traces.serving(home, record, what["request"]):
                answer = serve()
            if not 200 <= answer["statusCode"] < 300:
                raise _NotStored(answer)
            return answer

        stored = idempotent_function(
            once,
            data_keyword_argument="what",
            persistence_store=self._layer,
            config=_config(context),
            output_serializer=_Answers(self._blobs, traces.blob_key(owner, record), rights),
            key_prefix=PREFIX,
        )
        try:
            answer: Proxy = stored(what={"key": [owner, key], "request": _fingerprint(event)})
        except _NotStored as exc:
            return exc.answer
        except IdempotencyValidationError as exc:
            raise InvalidError("This Idempotency-Key was used for another request.", code="idempotency_key_reused") from exc
        except IdempotencyAlreadyInProgressError as exc:
            running = traces.outcome_of(home, record) if home is not None else None
            told: dict[str, Any] = {"turn_id": running.turn_id} if running and running.turn_id else {}
            raise ConflictError(
                "A request with this Idempotency-Key is still running.", code="idempotency_in_flight", retry_after=1, **told
            ) from exc
        return answer


def _key(event: dict[str, Any]) -> str | None:
    """The request's key. Raises InvalidError for one that is not 1 to 255 printable ASCII characters."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    key = headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
        raise InvalidError.field("Idempotency-Key", "A key is 1 to 255 printable ASCII characters.")
    return str(key)


def record_id(owner: str, key: str) -> str:
    """The id under which Powertools keeps the answer of a key."""
    payload = json.dumps([owner, key], sort_keys=True).encode()
    return f"{PREFIX}#{hashlib.sha256(payload).hexdigest()}"


def _fingerprint(event: dict[str, Any]) -> str:
    query = event.get("multiValueQueryStringParameters") or {}
    parts = [event["httpMethod"], event["path"], sorted((name, list(values)) for name, values in query.items()), event.get("body") or ""]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
