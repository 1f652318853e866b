"""Everything of one person as JSON lines {type, data}, in pages where it is more than one answer may hold.

The lines stand in an order that later writes do not move (conversations by id, then memories by id), so a page says with one place where
the next one goes on: nothing is kept between them, and an export that was interrupted goes on from its last page.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from pydantic import BaseModel

from tidemark.clock import now
from tidemark.conversations.model import ConversationState
from tidemark.conversations.store import ConversationStore
from tidemark.memory.records import StoredEntity
from tidemark.memory.store import MemoryStore, View
from tidemark.pages import PAGE_BYTES
from tidemark.privacy.people import Person
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller

REMEMBERED = ("entity", "relation", "shared")  # the parts behind the conversations, in their order
LOADED = 10  # messages with their texts at a time; one may be of 5 MB

Lines = Iterator[tuple[str, str]]  # each with the place behind it


@dataclass(frozen=True, slots=True)
class Export:
    lines: list[str]
    next: str | None  # the place where the next page begins


class Exporter:
    def __init__(self, conversations: ConversationStore, memories: MemoryStore) -> None:
        self._conversations, self._memories = conversations, memories

    def export(self, caller: Caller, external_subject_id: str, place: str | None) -> Export:
        """A page of the person's lines, from the beginning or from a place. The first one is audited."""
        caller.need("admin")
        if place is None:
            audit.record(caller, "subject.export", f"subjects/{external_subject_id}")
        lines: list[str] = []
        size, behind = 0, place
        for at, line in self._from(Person(caller.tenant_id, external_subject_id), place):
            # as it stands in the function's answer, which is JSON itself
            size += len(json.dumps(line, ensure_ascii=False).encode())
            if lines and size > PAGE_BYTES:
                return Export(lines, behind)
            lines.append(line)
            behind = at
        return Export(lines, None)

    def _from(self, person: Person, place: str | None) -> Lines:
        part, *ids = place.split("/") if place else ("",)
        conversations = sorted(person.conversations(), key=lambda state: state.id)
        if part not in REMEMBERED:
            yield from self._said(conversations, part, ids)
            part, ids = REMEMBERED[0], []
        for name in REMEMBERED[REMEMBERED.index(part) :]:
            for id, line in self._remembered(person, conversations, name):
                if name != part or not ids or id > ids[0]:
                    yield f"{name}/{id}", line()

    def _said(self, conversations: list[ConversationState], part: str, ids: list[str]) -> Lines:
        for state in conversations:
            if not ids or state.id > ids[0]:
                yield from self._conversation(state, "", [])
            elif state.id == ids[0]:
                yield from self._conversation(state, part, ids[1:])

    def _remembered(self, person: Person, conversations: list[ConversationState], name: str) -> Iterator[tuple[str, Callable[[], str]]]:
        """One part of what is remembered, by id; what a line holds is read only where it is wanted."""
        view = View(person.tenant_id, person.scope)
        if name == "entity":
            for entity in self._memories.entities(view, now(), include_expired=True):
                yield entity.id, partial(self._entity, person, entity)
        elif name == "relation":
            for relation in self._memories.relations(view):
                yield relation.id, partial(_line, "relation", relation.public())
        else:
            for entity in sorted(person.shared(self._memories, conversations), key=lambda one: one.id):
                yield entity.id, partial(_line, "entity", entity.public())

    def _conversation(self, state: ConversationState, part: str, ids: list[str]) -> Lines:
        """One conversation from a place within it: itself, its messages, its compactions."""
        if part == "":
            yield f"conversation/{state.id}", _line("conversation", state.public())
        if part != "compaction":
            messages = self._conversations.walk(state, None, after=ids[0] if ids else None)
            while batch := list(islice(messages, LOADED)):
                for message in self._conversations.load(state.tenant_id, batch):
                    yield f"message/{state.id}/{message.id}", _line("message", message.public())
            ids = []
        for compaction in sorted(self._conversations.compactions(state, 10_000, None), key=lambda one: one.id):
            if not ids or compaction.id > ids[0]:
                yield f"compaction/{state.id}/{compaction.id}", _line("compaction", compaction.public())

    def _entity(self, person: Person, entity: StoredEntity) -> str:
        """An entity and the lines of its history, which belong on one page."""
        versions = self._memories.history(person.tenant_id, person.scope, entity.id)
        told = [{"entity_id": entity.id, **version.public().model_dump(mode="json")} for version in versions]
        return "\n".join([_line("entity", entity.public()), *(_line("history", one) for one in told)])


def _line(kind: str, data: BaseModel | dict[str, Any]) -> str:
    found = data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    return json.dumps({"type": kind, "data": found}, ensure_ascii=False)


def next_line(cursor: str) -> str:
    """The last line of a page that is not the last one."""
    return _line("next", {"cursor": cursor})
