"""Asking the index on behalf of a request."""

from collections.abc import Callable

from tidemark.errors import UnavailableError
from tidemark.observability import measure
from tidemark.search.port import Candidate, IndexModelMismatchError, Query, SearchIndex, SearchUnavailableError


def candidates(index: Callable[[], SearchIndex], query: Query) -> list[Candidate]:
    """Raises UnavailableError: an index that is away is no empty answer. A turn goes on without it."""
    try:
        return index().search(query)
    except (SearchUnavailableError, IndexModelMismatchError) as exc:
        measure("SearchUnavailable")
        raise UnavailableError("Search is not available now.", code="search_unavailable", retryable=True) from exc
