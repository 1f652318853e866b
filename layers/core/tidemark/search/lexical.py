"""The lexical arm of the embedded index: BM25 over postings of its own, with the statistics of one scope.

FTS5 counts its statistics over all tenants, so that a word's weight, and with it a score, would tell one tenant what others store, and
a scope of ten documents would be weighed by the language of ten thousand strangers'.
"""

import json
import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import apsw

from tidemark.search.sqlite import rows
from tidemark.search.text import index_words

SCHEMA = """
CREATE TABLE IF NOT EXISTS postings (term INTEGER, doc INTEGER, tf REAL, length INTEGER, PRIMARY KEY (term, doc)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS document_terms (doc INTEGER PRIMARY KEY, terms BLOB);
"""

K1 = 1.2
B = 0.75
CONTEXT_WEIGHT = 0.5  # of a word that only stands in the turns in front of a message
_STRANGERS = 50
MAX_TERMS = 64  # a long question is asked by its rarest words


@dataclass(frozen=True, slots=True)
class LexicalHit:
    bm25: float
    coverage: float


def add(connection: apsw.Connection, partition: int, doc: int, own: str, context: str) -> int:
    """Indexes one document and gives its length in words."""
    counts = Counter[str]()
    own_words = index_words(own)
    counts.update(own_words)
    weights: dict[str, float] = dict(counts)
    for word, count in Counter(index_words(context)).items():
        weights[word] = weights.get(word, 0.0) + CONTEXT_WEIGHT * count
    length = round(sum(weights.values()))
    terms = [term_of(partition, word) for word in weights]
    connection.executemany(
        "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?)",
        [(term, doc, tf, length) for term, tf in zip(terms, weights.values(), strict=True)],
    )
    connection.execute("INSERT OR REPLACE INTO document_terms VALUES (?, ?)", (doc, array("q", terms).tobytes()))
    return length


def remove(connection: apsw.Connection, doc: int) -> None:
    for (terms,) in rows(connection, "DELETE FROM document_terms WHERE doc = ? RETURNING terms", (doc,)):
        connection.executemany("DELETE FROM postings WHERE term = ? AND doc = ?", [(term, doc) for term in array("q", terms)])


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question that one partition holds, weighed by how rare they are there; `total` weighs the absent ones too."""

    weights: dict[int, float]
    total: float
    average_length: float

    def search(self, connection: apsw.Connection, limit: int, allowed: str, bindings: Sequence[object]) -> dict[int, LexicalHit]:
        """The best `limit` documents; `allowed` is a condition on `doc`, with its bindings."""
        if not self.weights:
            return {}
        found = rows(
            connection,
            f"""SELECT doc, SUM(w * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / ?))) AS bm25, SUM(w)
            FROM (SELECT key AS k, json_extract(value, '$[0]') AS t, json_extract(value, '$[1]') AS w FROM json_each(?))
            CROSS JOIN postings ON term = t WHERE {allowed} GROUP BY doc ORDER BY bm25 DESC LIMIT ?""",  # noqa: S608 - figures and our own condition
            (self.average_length, json.dumps(list(self.weights.items())), *bindings, limit),
        )
        return {doc: LexicalHit(bm25, min(1.0, weight / self.total)) for doc, bm25, weight in found}


def question(connection: apsw.Connection, partition: int, words: Mapping[str, float], documents: int, total_length: int) -> Question:
    asked = {term_of(partition, word): weight for word, weight in words.items()}
    counted = "SELECT term, count(*) FROM postings WHERE term IN (SELECT value FROM json_each(?)) GROUP BY term"
    containing: dict[int, int] = dict(rows(connection, counted, (json.dumps(list(asked)),)))
    weights = {term: weight * rarity(documents, containing.get(term, 0)) for term, weight in asked.items()}
    rarest = sorted(containing, key=lambda term: -weights[term])[:MAX_TERMS]
    return Question({term: weights[term] for term in rarest}, sum(weights.values()), max(1.0, total_length / max(1, documents)))


def term_of(partition: int, word: str) -> int:
    """A word of one partition as a key: the words of two scopes never meet."""
    digest = blake2b(f"{partition}\x00{word}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def rarity(documents: int, containing: int) -> float:
    """As if the scope held some strangers' documents without the word: two memories cannot tell which of their words are common."""
    return math.log(1 + (documents + _STRANGERS - containing + 0.5) / (containing + 0.5))
