"""The derived search index: what it stores, what it is asked, what it answers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Kind = Literal["memory", "message"]


@dataclass(frozen=True, slots=True)
class Document:
    """One searchable thing. `tenant_id` and `scope` (storage.keys.scope_key) partition the index: no query reaches across.

    `text` is what a hit is about; `context` stands in front of it in the key only (date, speaker, earlier turns). `name`, of a memory, is
    matched whole after folding. `vector` is absent where the embedder was not available: the lexical arms still find the document.
    """

    id: str
    kind: Kind
    tenant_id: str
    scope: str
    text: str
    occurred_at: datetime
    updated_at: datetime
    context: str = ""
    name: str = ""
    entity_type: str = ""
    conversation_id: str = ""
    workspace_id: str = ""
    speaker: str = ""
    role: str = ""
    position: int = 0  # a message's sequence in its conversation
    session: int = 0  # which sitting of its conversation a message belongs to, from 1
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question to one scope. Every filter is applied before the arms are cut, so that a page is full whenever enough rows match."""

    tenant_id: str
    scope: str
    kind: Kind
    text: str
    limit: int  # candidates of each arm
    vector: Sequence[float] | None = None
    entity_types: Collection[str] = field(default_factory=frozenset)
    conversation_ids: Collection[str] = field(default_factory=frozenset)
    speaker: str | None = None
    occurred_from: datetime | None = None  # inclusive
    occurred_to: datetime | None = None  # exclusive
    updated_from: datetime | None = None
    session: int | None = None
    neighbours: int = 0  # how many turns on either side of a message come along as candidates, under the same filters,
    neighbours_of: int = 20  # and of how many of each arm's best; those of all cost much and gain nothing that can be measured


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit with what each arm says of it, whichever arm found it.

    Cosine in -1..1 (None: one of the two has no vector), BM25 (None: none of the question's words), whole-name match. `coverage` is the
    share of the question's words that the document holds, each counted by its rarity in the scope, from 0 to 1.
    """

    id: str
    cosine: float | None
    bm25: float | None
    name_match: bool
    conversation_id: str
    speaker: str
    position: int
    session: int
    occurred_at: datetime
    updated_at: datetime
    coverage: float = 0.0
    length: int = 0  # words of its key; 0 is unknown


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the thing behind a document should be, by what the index says of it."""

    tenant: str
    scope: str
    kind: Kind
    conversation: str
    id: str
    updated: datetime


class IndexModelMismatchError(Exception):
    """The index holds vectors of another model or dimension: searching it would answer noise. Reindex, or configure that model."""


class SearchUnavailableError(Exception):
    """The index cannot be asked now; a caller goes on without it, and never takes this for an empty answer."""


class SearchIndex(Protocol):
    """Both implementations pass tests/contract/test_search_index.py."""

    def upsert(self, documents: Sequence[Document], *, at_once: bool = False) -> None:
        """Stores or replaces documents by (tenant, id). An older `updated_at` never replaces a newer one. They are found within a
        second; with `at_once` by the very next search, which costs more."""
        ...

    def delete(self, tenant_id: str, ids: Collection[str]) -> None: ...

    def delete_conversation(self, tenant_id: str, conversation_id: str) -> None: ...

    def delete_scope(self, tenant_id: str, scope: str | None) -> None:
        """Removes one scope, or with None the whole tenant."""
        ...

    def search(self, query: Query) -> list[Candidate]:
        """The union of the arms' candidates, each at most once, in no particular order."""
        ...

    def stale(self, documents: Sequence[Document]) -> list[Document]:
        """Those that the index lacks, holds in an older state, or holds without a vector. What was written in the last second may be
        among them."""
        ...

    def sample(self, count: int) -> list[Placed]:
        """Documents of all tenants by chance, each at most once, to be looked for in the table."""
        ...
