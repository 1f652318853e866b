"""A graph of what the rule extractor reads from messages: which of them state something of the same person, place or project."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidemark.memory.extractor import RuleExtractor
from tidemark.memory.graph import MAX_SEEDS
from tidemark.memory.model import SourceMessage
from tidemark.search.port import Document
from tidemark.search.text import name_key

SHARE = 0.3  # of a seed's score for what it is joined to, as for the turn beside a hit
_EVERYWHERE = 0.1  # of the messages: who is named in more joins all to all


class MessageGraph:
    def __init__(self, documents: Sequence[Document]) -> None:
        named: defaultdict[str, set[str]] = defaultdict(set)
        for one in documents:
            said = SourceMessage(
                id=one.id, conversation_id=one.conversation_id, role="user", speaker=one.speaker, content=one.text, at=one.occurred_at
            )
            for statement in RuleExtractor().extract([said], {}):
                for mention in statement.mentions:
                    named[name_key(mention.name)].add(one.id)
        telling = [ids for ids in named.values() if 1 < len(ids) <= _EVERYWHERE * len(documents)]
        self._beside: defaultdict[str, set[str]] = defaultdict(set)
        for ids in telling:
            for id in ids:
                self._beside[id] |= ids - {id}
        self.edges = sum(len(ids) for ids in self._beside.values()) // 2

    def ranked(self, scores: Iterable[tuple[str, float]]) -> list[str]:
        """Ids by their scores, best first, after what the best are joined to got its share; it may come in anew."""
        found = dict(scores)
        best = sorted(found, key=lambda id: -found[id])[:MAX_SEEDS]
        given = {other: SHARE * found[id] for id in reversed(best) for other in self._beside[id]}
        total = {id: found.get(id, 0.0) + given.get(id, 0.0) for id in {*found, *given}}
        return sorted(total, key=lambda id: -total[id])
