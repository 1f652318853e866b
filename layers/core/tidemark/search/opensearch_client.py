"""Speaking to OpenSearch: signed where it must be, never longer than a caller can wait, and not at all while it is known to be away."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import ImproperlyConfigured, OpenSearchException, TransportError

from tidemark.observability import logger
from tidemark.search.port import SearchUnavailableError

T = TypeVar("T")

SEARCH_SECONDS = 2.0  # a turn answers without memories rather than wait longer
WRITE_SECONDS = 30.0
AT_ONCE_SECONDS = 5.0  # of a write that a request waits for
_FAILURES = 3  # in a row
_PAUSE_SECONDS = 10.0
_CONNECTIONS = 8
_BUSY = frozenset({429, 500, 502, 503, 504})

# The client would log addresses and, at DEBUG, bodies.
for name in ("opensearch", "opensearchpy.trace"):
    logging.getLogger(name).setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which service answers behind a URL, by its host name: "es" (a managed domain), "aoss" (Serverless) or none of AWS's."""

    url: str
    service: str | None

    @classmethod
    def of(cls, url: str, *, on_aws: bool = False) -> "Endpoint":
        """A domain may have a name of the owner's own: on AWS everything without credentials in its URL is signed."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        amazon = host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".on.aws"))
        if amazon and ".aoss." in host:
            return cls(url, "aoss")
        return cls(url, "es" if amazon or (on_aws and parts.username is None) else None)

    @property
    def serverless(self) -> bool:
        return self.service == "aoss"


def connect(endpoint: Endpoint, region: str, credentials: Any = None) -> OpenSearch:
    """`credentials` are botocore's, asked for each request, so that they may be renewed. Raises ValueError for Serverless."""
    if endpoint.serverless:
        raise ValueError(
            "OpenSearch Serverless takes neither ids nor routing for vectors: use a managed domain (docs/decisions/0007-opensearch.md)"
        )
    signer = Urllib3AWSV4SignerAuth(credentials, region, endpoint.service) if endpoint.service else None
    return OpenSearch(
        [endpoint.url],
        connection_class=Urllib3HttpConnection,
        pool_maxsize=_CONNECTIONS,
        timeout=WRITE_SECONDS,
        max_retries=1,  # a kept connection that the other side has closed
        retry_on_status=(502, 503, 504),
        retry_on_timeout=False,
        **({"http_auth": signer} if signer else {}),
    )


class Breaker:
    """After some failures in a row nothing is asked for a while; then one call tries whether it is back."""

    def __init__(self, failures: int = _FAILURES, pause: float = _PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._pause, self._clock = failures, pause, clock
        self._lock = threading.Lock()
        self._failed = 0
        self._until = 0.0

    def run(self, work: Callable[[], T]) -> T:
        """Raises SearchUnavailableError for whatever keeps the engine from answering."""
        self._enter()
        try:
            answer = work()
        except TransportError as error:
            status = error.status_code if isinstance(error.status_code, int) else 0
            self._failure(counts=status == 0 or status in _BUSY)
            logger.warning("search engine failed", status=status, error=type(error).__name__)
            raise SearchUnavailableError(f"the search engine answered {status or 'nothing'}") from error
        except (OpenSearchException, ImproperlyConfigured) as error:
            self._failure(counts=True)
            raise SearchUnavailableError(f"the search engine cannot be asked: {type(error).__name__}") from error
        with self._lock:
            self._failed = 0
        return answer

    def _enter(self) -> None:
        with self._lock:
            if self._failed < self._most:
                return
            if self._clock() < self._until:
                raise SearchUnavailableError("the search engine is away; it is not asked for some seconds")
            self._until = self._clock() + self._pause  # ours is the call that tries

    def _failure(self, *, counts: bool) -> None:
        with self._lock:
            self._failed = self._failed + 1 if counts else 0
            self._until = self._clock() + self._pause
