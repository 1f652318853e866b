"""How statements become memory: one entity a statement, joined to what it names, closing what it replaces.

Every statement is one transaction, and a statement that is stored already (same name, same source message) changes nothing, so a job
that was killed anywhere may simply run again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial

from tidemark.clock import iso
from tidemark.memory import secrets
from tidemark.memory.entities import retried
from tidemark.memory.model import EntityType, Link, Mention, SourceMessage, Statement
from tidemark.memory.names import fold
from tidemark.memory.records import PROVENANCE_KEPT, Provenance, StoredEntity, StoredRelation, Whose, joined
from tidemark.memory.scope import Scope
from tidemark.memory.store import Also, MemoryStore, Writes
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Actor
from tidemark.tenancy.model import MemorySettings

USER = "user"  # the subject of the caller's own statements, as a part of keys
RANK = {"low": 0, "medium": 1, "high": 2}
SAID_AT = "said_at"  # the property of a fact whose start was stated: when it was said, which its valid_from does not tell


@dataclass
class Learned:
    """What was stored or found stored already: the statements' entities and their relations; `mentions` beside them; what was refused."""

    entities: list[StoredEntity] = field(default_factory=list)
    relations: list[StoredRelation] = field(default_factory=list)
    mentions: list[StoredEntity] = field(default_factory=list)
    closed: list[StoredEntity] = field(default_factory=list)
    refused: int = 0
    finished: bool = False

    @property
    def changed(self) -> list[StoredEntity]:
        """All entities whose search rows may have changed, each once and as it is now."""
        return list({entity.id: entity for entity in (*self.closed, *self.mentions, *self.entities)}.values())


class Learning:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def learn(
        self,
        tenant_id: str,
        scope: Scope,
        statements: Sequence[Statement],
        messages: Mapping[str, SourceMessage],
        actor: Actor,
        settings: MemorySettings,
        *,
        threshold: str = "low",
        finish: Callable[[], Also] | None = None,
    ) -> Learned:
        """Stores statements in their order. Statements under the threshold, and secrets under the policy `refuse`, are left out.

        What `finish` gives is written in the transaction of the last statement; `finished` says whether there was one.
        """
        learned = Learned()
        kept: list[Statement] = []
        for statement in statements:
            if RANK[statement.importance] < RANK[threshold]:
                continue
            clean, secret = screened(statement)
            if secret and settings.secrets == "refuse":
                learned.refused += 1
                continue
            kept.append(clean)
        for clean in kept:
            also = finish if clean is kept[-1] else None
            retried(partial(self._store_one, tenant_id, scope, clean, messages.get(clean.message_id), actor, learned, also))
            learned.finished = also is not None
        return learned

    def _store_one(
        self,
        tenant_id: str,
        scope: Scope,
        statement: Statement,
        message: SourceMessage | None,
        actor: Actor,
        learned: Learned,
        finish: Callable[[], Also] | None,
    ) -> None:
        work = _Work(self._store, Writes(tenant_id, scope, actor), statement, message)
        work.run()
        work.writes.commit(finish() if finish else None)
        if work.created:
            usage.add(tenant_id, memories=work.created)
        learned.entities += [work.entity] if work.entity else []
        learned.relations += work.relations
        learned.mentions += [entity for entity in work.mentions.values() if entity is not work.entity]
        learned.closed += work.closed


def screened(statement: Statement) -> tuple[Statement, bool]:
    """The statement without its credentials, and whether there were any."""
    texts = {name: secrets.redact(getattr(statement, name) or "") for name in ("name", "description", "quote", "value")}
    properties = secrets.redact_properties(statement.properties)
    if properties == statement.properties and not any(secret for _, secret in texts.values()):
        return statement, False
    clean = {name: text or None if name == "value" else text[:255] if name == "name" else text for name, (text, _) in texts.items()}
    return statement.model_copy(update={**clean, "properties": properties}), True


class _Work:
    """One statement on its way into one transaction."""

    def __init__(self, store: MemoryStore, writes: Writes, statement: Statement, message: SourceMessage | None) -> None:
        self.store, self.writes, self.statement = store, writes, statement
        self.at = message.at if message else writes.at
        self.source = Provenance(
            conversation_id=message.conversation_id if message else None,
            message_id=message.id if message else None,
            speaker=message.speaker if message else None,
            quote=statement.quote or None,
            trust=message.trust if message else "explicit",
            recorded_at=writes.at,
        )
        self.mentions: dict[str, StoredEntity] = {}
        self.entity: StoredEntity | None = None
        self.relations: list[StoredRelation] = []
        self.closed: list[StoredEntity] = []
        self.created = 0

    @property
    def valid_from(self) -> datetime:
        return self.statement.valid_from or self.at

    @property
    def _stated(self) -> bool:
        """Whether the statement tells when it began; otherwise it holds from when it was said, its start being unknown."""
        return self.valid_from != self.at

    @property
    def _properties(self) -> dict[str, object]:
        return {**self.statement.properties, **({SAID_AT: iso(self.at)} if self._stated else {})}

    def run(self) -> None:
        statement = self.statement
        for mention in statement.mentions:
            self.mentions.setdefault(fold(mention.name), self._mention(mention))
        if statement.ends:
            self._end()
            return
        valid_to = statement.valid_to
        if statement.exclusive:
            valid_to = self._replace_former(valid_to)
        self.entity = self._restated() or self._statement_entity(valid_to)
        if statement.exclusive and valid_to is None:
            self.writes.point_exclusive(self._subject_key, statement.exclusive, self.entity.id, self._pointed[0])
        for link in statement.links:
            self._relate(link, self.entity)

    # entities
    def _mention(self, mention: Mention) -> StoredEntity:
        known = self._living(mention.entity_type, mention.name)
        if known is None:
            return self._create(
                StoredEntity(
                    **self._common(),
                    name=mention.name,
                    entity_type=mention.entity_type,
                    description=mention.description,
                    mention=True,
                )
            )
        changes: dict[str, object] = {}
        if mention.name not in (known.name, *known.aliases):
            changes["aliases"] = [*known.aliases, mention.name]
        if (description := joined(known.description, mention.description)) != known.description:
            changes["description"] = description
        return self.writes.change(known, "merged", **changes) if changes else known

    def _common(self) -> dict[str, object]:
        return {
            "id": "",
            "scope": self.writes.scope,
            "created_at": self.writes.at,
            "updated_at": self.writes.at,
            "source_conversation_id": self.source.conversation_id,
            "source_message_id": self.source.message_id,
            "provenance": [self.source],
        }

    def _create(self, entity: StoredEntity) -> StoredEntity:
        self.created += 1
        return self.writes.create(entity)

    def _living(self, entity_type: EntityType, name: str) -> StoredEntity | None:
        known = self.store.by_name(self.writes.tenant_id, self.writes.scope, entity_type, name)
        return known if known is not None and known.alive(self.writes.at) else None

    def _statement_entity(self, valid_to: datetime | None) -> StoredEntity:
        statement = self.statement
        same = self.mentions.get(fold(statement.name))
        known = same if same is not None and same.entity_type == statement.entity_type else None
        known = known or self._living(statement.entity_type, statement.name)
        if known is not None:
            return self._seen_again(known, valid_to)
        return self._create(
            StoredEntity(
                **self._common(),
                name=statement.name,
                entity_type=statement.entity_type,
                description=statement.description,
                properties=self._properties,
                subject=self._whose(),
                polarity=statement.polarity,
                valid_from=self.valid_from,
                valid_to=valid_to,
                exclusive=statement.exclusive,
                value=statement.value,
            )
        )

    def _restated(self) -> StoredEntity | None:
        """The preference that holds, said in other words: "really enjoys espresso" is a further name of "likes espresso"."""
        former = self._former()
        if former is None or former.entity_type != "preference" or not _same(former, self.statement):
            return None
        if former.polarity != self.statement.polarity or fold(former.name) == fold(self.statement.name):
            return None
        aliases = list(dict.fromkeys([*former.aliases, self.statement.name]))
        return self._seen_again(former, former.valid_to, aliases=aliases)

    def _seen_again(self, known: StoredEntity, valid_to: datetime | None, **more: object) -> StoredEntity:
        """The same statement from another message: its source is added; one that had been closed holds again."""
        told = any(one.message_id == self.source.message_id and one.quote == self.source.quote for one in known.provenance)
        if told and (self.source.message_id is not None or known.valid_to is None):
            return known
        changes: dict[str, object] = {"provenance": [*known.provenance, self.source][-PROVENANCE_KEPT:], "mention": False, **more}
        if known.valid_to is not None and known.valid_to <= self.valid_from:
            kept = {key: value for key, value in known.properties.items() if key != SAID_AT}
            changes |= {"valid_from": self.valid_from, "valid_to": valid_to, "properties": {**kept, **self._properties}}
        if known.mention:
            changes |= {
                "description": joined(known.description, self.statement.description),
                "properties": {**known.properties, **self._properties},
                "subject": self._whose(),
            }
        if known.id in self.writes.entities:  # made a moment ago, in this very transaction
            return known
        return self.writes.change(known, "merged", **changes)

    def _whose(self) -> Whose:
        if self.statement.subject is None:
            return Whose(kind="user")
        named = self.mentions.get(fold(self.statement.subject))
        return Whose(kind="entity", entity_id=named.id if named else None, name=self.statement.subject)

    @property
    def _subject_key(self) -> str:
        return USER if self.statement.subject is None else f"entity:{fold(self.statement.subject)}"

    # what a newer statement does to an older one
    @cached_property
    def _pointed(self) -> tuple[str | None, StoredEntity | None]:
        """What the pointer of the predicate names, read once: what is decided by it is written only where it has not moved since."""
        exclusive = self.statement.exclusive
        return self.store.exclusive(self.writes.tenant_id, self.writes.scope, self._subject_key, exclusive) if exclusive else (None, None)

    def _former(self) -> StoredEntity | None:
        _, former = self._pointed
        return former if former is not None and former.deleted_at is None and former.valid_to is None else None

    def _replace_former(self, valid_to: datetime | None) -> datetime | None:
        """Closes what this statement replaces; when it is itself the older one, the time at which it ended."""
        former = self._former()
        if former is None or _same(former, self.statement):
            return valid_to
        if self._older_than(former):
            return max(former.valid_from, self.valid_from) if former.valid_from else valid_to
        self._close(former, self.valid_from)
        return valid_to

    def _older_than(self, former: StoredEntity) -> bool:
        """Whether this statement is about an earlier time than what holds.

        Two stated starts tell it themselves. A start that nobody stated is only the time of a message and says nothing about when the
        fact began: then the statement that was said later is the newer one.
        """
        if former.valid_from is None:
            return False
        said = _said_at(former)
        if self._stated and said is not None:
            return self.valid_from < former.valid_from
        return self.at < (said or former.valid_from)

    def _end(self) -> None:
        """Closes what the statement says has ended, if that is what holds."""
        former = self._former()
        if former is None or self._older_than(former):
            return
        if self.statement.value is None or _same(former, self.statement):
            self._close(former, self.statement.valid_to or self.valid_from)

    def _close(self, former: StoredEntity, at: datetime) -> None:
        ended = max(at, former.valid_from) if former.valid_from else at
        self.closed.append(self.writes.change(former, "superseded", valid_to=ended))
        for relation in self.store.relations_at(self.writes.tenant_id, self.writes.scope, former.id):
            if relation.valid_to is None:
                self.writes.change_relation(relation, valid_to=ended)
        for relation in self._asserted_by(former):
            self.writes.change_relation(relation, valid_to=ended)

    def _asserted_by(self, former: StoredEntity) -> list[StoredRelation]:
        """Relations between other entities that the former statement brought along."""
        ends = [former.subject.entity_id] if former.subject and former.subject.entity_id else []
        found = [
            relation
            for end in ends
            for relation in self.store.relations_at(self.writes.tenant_id, self.writes.scope, end)
            if relation.statement_id == former.id and relation.valid_to is None and relation.id not in self.writes.relations
        ]
        return list({relation.id: relation for relation in found}.values())

    # relations
    def _relate(self, link: Link, own: StoredEntity) -> None:
        source = own if link.source is None else self.mentions.get(fold(link.source))
        target = own if link.target is None else self.mentions.get(fold(link.target))
        if source is None or target is None or source.id == target.id:
            return
        if any(
            (one.source_entity_id, one.target_entity_id, one.relation_type) == (source.id, target.id, link.relation_type)
            for one in self.relations
        ):
            return
        known = self.store.same_relation(self.writes.tenant_id, self.writes.scope, source.id, target.id, link.relation_type)
        if known is not None:
            if known.valid_to is not None and known.id not in self.writes.relations and own.valid_to is None:
                known = self.writes.change_relation(known, valid_from=own.valid_from, valid_to=None, statement_id=own.id)
            self.relations.append(known)
            return
        self.relations.append(
            self.writes.relate(
                StoredRelation(
                    id="",
                    source_entity_id=source.id,
                    target_entity_id=target.id,
                    relation_type=link.relation_type,
                    scope=self.writes.scope,
                    source_conversation_id=self.source.conversation_id,
                    source_message_id=self.source.message_id,
                    provenance=[self.source],
                    valid_from=own.valid_from,
                    valid_to=own.valid_to,
                    statement_id=own.id,
                    created_at=self.writes.at,
                    updated_at=self.writes.at,
                )
            )
        )


def _said_at(entity: StoredEntity) -> datetime | None:
    """When a fact with a stated start was said; None where the start is the message's own time."""
    said = entity.properties.get(SAID_AT)
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:  # properties are anybody's to write
        return None
    return found if found is not None and found.tzinfo is not None else None


def _same(former: StoredEntity, statement: Statement) -> bool:
    """Whether both say the same value, in whatever written form."""
    mine = statement.value or statement.name
    theirs = former.value or former.name
    return fold(mine) == fold(theirs)
