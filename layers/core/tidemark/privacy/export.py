"""Everything of one person as JSON lines {type, data}."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from tidemark.clock import now
from tidemark.conversations.store import ConversationStore
from tidemark.errors import TooLargeError
from tidemark.memory.store import MemoryStore, View
from tidemark.privacy.people import Person
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller

MOST_BYTES = 5_500_000  # what a function may answer


class Exporter:
    def __init__(self, conversations: ConversationStore, memories: MemoryStore) -> None:
        self._conversations, self._memories = conversations, memories

    def export(self, caller: Caller, external_subject_id: str) -> str:
        """The person's JSON lines. Raises TooLargeError where they do not fit one answer."""
        caller.need("admin")
        audit.record(caller, "subject.export", f"subjects/{external_subject_id}")
        lines: list[str] = []
        size = 0
        for line in self._lines(Person(caller.tenant_id, external_subject_id)):
            lines.append(line)
            size += len(line.encode()) + 1
            if size > MOST_BYTES:
                raise TooLargeError(
                    "This person's data is larger than one answer; export the conversations one by one.", code="export_too_large"
                )
        return "".join(f"{line}\n" for line in lines)

    def _lines(self, person: Person) -> Iterator[str]:
        conversations = list(person.conversations())
        for state in conversations:
            yield _line("conversation", state.public())
            messages = list(self._conversations.walk(state, None))
            for start in range(0, len(messages), 50):
                for message in self._conversations.load(person.tenant_id, messages[start : start + 50]):
                    yield _line("message", message.public())
            for compaction in self._conversations.compactions(state, 10_000, None):
                yield _line("compaction", compaction.public())
        view = View(person.tenant_id, person.scope)
        for entity in self._memories.entities(view, now(), include_expired=True):
            yield _line("entity", entity.public())
            for version in self._memories.history(person.tenant_id, person.scope, entity.id):
                yield _line("history", {"entity_id": entity.id, **version.public().model_dump(mode="json")})
        for relation in self._memories.relations(view):
            yield _line("relation", relation.public())
        for entity in person.shared(self._memories, conversations):
            yield _line("entity", entity.public())


def _line(kind: str, data: BaseModel | dict[str, Any]) -> str:
    found = data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    return json.dumps({"type": kind, "data": found}, ensure_ascii=False)
