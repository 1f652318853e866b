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
from tidemark.memory.exclusive import FAVOURITE, is_of, liking, restates, same
from tidemark.memory.model import EntityType, Link, Mention, SourceMessage, Statement
from tidemark.memory.names import fold
from tidemark.memory.records import PROVENANCE_KEPT, Provenance, SaidAlong, StoredEntity, StoredRelation, Whose, joined
from tidemark.memory.scope import Scope
from tidemark.memory.store import Also, MemoryStore, Writes
from tidemark.tenancy import usage
from tidemark.tenancy.caller import Actor
from tidemark.tenancy.model import MemorySettings

USER = "user"  # the subject of the caller's own statements, as a part of keys
RANK = {"low": 0, "medium": 1, "high": 2}
ALIASES_KEPT = 20  # of further wordings
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
        valid_to = self._replace_former(statement.valid_to)
        self.entity = (None if valid_to else self._restated() or self._as_favourite()) or self._statement_entity(valid_to)
        if statement.exclusive and valid_to is None:
            self._point(statement.exclusive, self.entity, self._pointed[0])
        if self._liking and valid_to is None and self._liked is None:
            self._point(self._liking, self.entity, self._liking_pointed[0])
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
        """What holds already, said in other words: "really enjoys espresso" is a further name of "likes espresso"."""
        former = self._former()
        if former is None or not restates(told := self._told(former), self.statement):
            return None
        if is_of(former.exclusive, FAVOURITE) and former.exclusive != self.statement.exclusive:
            return self._as_liking(former)
        more: dict[str, object] = {"aliases": self._aliases(former, self.statement.name)}
        if former.properties.keys() >= self.statement.properties.keys():
            return self._seen_again(former, None, **more)
        more["description"] = joined(former.description, self.statement.description)
        properties = {**self.statement.properties, **former.properties}
        if self._stated and _said_at(told) is None and told.valid_from is not None and self.valid_from < told.valid_from:
            more["valid_from"], properties = self.valid_from, {**properties, **self._properties}
        return self._seen_again(former, None, properties=properties, **more)

    def _aliases(self, known: StoredEntity, name: str) -> list[str]:
        return list(dict.fromkeys([*known.aliases, name]))[:ALIASES_KEPT]

    def _as_favourite(self) -> StoredEntity | None:
        """A favourite that is liked already is one memory with the liking: "favourite coffee is espresso" beside "likes espresso"."""
        liked = self._liked
        if liked is None or liked.exclusive != self._liking or liked.id in self.writes.entities:
            return None
        if self._along(liked):
            return self._seen_again(liked, None)
        said = SaidAlong(
            exclusive=self.statement.exclusive or "",
            value=self.statement.value,
            name=self.statement.name,
            description=self.statement.description,
            properties=self._properties,
            valid_from=self.valid_from,
            provenance=[self.source],
        )
        return self._seen_again(
            liked,
            None,
            favourites=[*liked.favourites, said],
            aliases=self._aliases(liked, said.name),
            description=joined(liked.description, said.description),
        )

    def _as_liking(self, favourite: StoredEntity) -> StoredEntity | None:
        """The liking of what is a favourite already. The memory becomes that of the liking, which outlives the favourite."""
        if self._living(favourite.entity_type, self.statement.name) is not None:
            return None
        said = SaidAlong.model_validate(favourite.model_dump(include=set(SaidAlong.model_fields)))
        liked = self._seen_again(
            favourite,
            None,
            name=self.statement.name,
            exclusive=self.statement.exclusive,
            value=self.statement.value,
            favourites=[said],
            aliases=self._aliases(favourite, favourite.name),
            description=joined(favourite.description, self.statement.description),
            properties=self._properties,
        )
        if liked is not favourite:
            self.writes.release_name(favourite)
            self.writes.claim_name(liked)
        return liked

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
        return self._read_pointer(self.statement.exclusive)

    @cached_property
    def _liking(self) -> str | None:
        return liking(self.statement)

    @cached_property
    def _liking_pointed(self) -> tuple[str | None, StoredEntity | None]:
        return self._read_pointer(self._liking)

    @property
    def _liked(self) -> StoredEntity | None:
        """What is known of the liking that this favourite implies, if it is one."""
        liked = _open(self._liking_pointed[1])
        return liked if liked is not None and liked.polarity == "positive" else None

    def _read_pointer(self, predicate: str | None) -> tuple[str | None, StoredEntity | None]:
        return self.store.exclusive(self.writes.tenant_id, self.writes.scope, self._subject_key, predicate) if predicate else (None, None)

    def _point(self, predicate: str, entity: StoredEntity, seen: str | None) -> None:
        self.writes.point_exclusive(self._subject_key, predicate, entity.id, seen)

    def _former(self) -> StoredEntity | None:
        return _open(self._pointed[1])

    def _told(self, former: StoredEntity) -> StoredEntity:
        """The former statement of this predicate as it was made: an entity may say it along with its own."""
        said = self._along(former)
        return former.model_copy(update=dict(said)) if said else former

    def _along(self, former: StoredEntity) -> SaidAlong | None:
        return next((one for one in former.favourites if one.exclusive == self.statement.exclusive), None)

    def _replace_former(self, valid_to: datetime | None) -> datetime | None:
        """Closes what this statement replaces; when it is itself the older one, the time at which it ended."""
        former, disliked = self._former(), _open(self._liking_pointed[1])
        against = [former] if former is not None and not same(self._told(former), self.statement) else []
        against += [disliked] if disliked is not None and disliked.polarity == "negative" else []
        for one in against:
            if self._older_than(one):
                began = self._told(one).valid_from
                return max(began, self.valid_from) if began else valid_to
        for one in against:
            self._close(one, self.valid_from)
        return valid_to

    def _older_than(self, former: StoredEntity) -> bool:
        """Whether this statement is about an earlier time than what holds.

        Two stated starts tell it themselves. A start that nobody stated is only the time of a message and says nothing about when the
        fact began: then the statement that was said later is the newer one.
        """
        former = self._told(former)
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
        if self.statement.value is None or same(self._told(former), self.statement):
            self._close(former, self.statement.valid_to or self.valid_from)

    def _close(self, former: StoredEntity, at: datetime) -> None:
        if said := self._along(former):
            self._close_favourite(former, said, at)
            return
        ended = max(at, former.valid_from) if former.valid_from else at
        self.closed.append(self.writes.change(former, "superseded", valid_to=ended))
        for relation in self.store.relations_at(self.writes.tenant_id, self.writes.scope, former.id):
            if relation.valid_to is None:
                self.writes.change_relation(relation, valid_to=ended)

    def _close_favourite(self, liked: StoredEntity, said: SaidAlong, at: datetime) -> None:
        """What is no favourite any more is liked as before; the favourite that it was gets a memory of its own, which has ended."""
        gone = said.description.split("\n")
        changes: dict[str, object] = {
            "favourites": [one for one in liked.favourites if one is not said],
            "aliases": [alias for alias in liked.aliases if alias != said.name],
            "description": "\n".join(line for line in liked.description.split("\n") if line not in gone),
        }
        self.closed.append(self.writes.change(liked, "updated", **changes))
        if self._living(liked.entity_type, said.name) is None:
            ended = max(at, said.valid_from) if said.valid_from else at
            former = liked.model_copy(update={**dict(said), "favourites": [], "aliases": [], "valid_to": ended, "access_count": 0})
            self.closed.append(self._create(former))

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
            if known.id not in self.writes.relations and own.valid_to is None and not self._in_force(known):
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

    def _in_force(self, relation: StoredRelation) -> bool:
        """Whether it holds without a known end, and the statement that brought it lives."""
        return relation.valid_to is None and bool(self.store.visible(self.writes.tenant_id, self.writes.scope, [relation], self.writes.at))


def _said_at(entity: StoredEntity) -> datetime | None:
    """When a fact with a stated start was said; None where the start is the message's own time."""
    said = entity.properties.get(SAID_AT)
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:  # properties are anybody's to write
        return None
    return found if found is not None and found.tzinfo is not None else None


def _open(entity: StoredEntity | None) -> StoredEntity | None:
    """The statement, if it holds without a known end."""
    return entity if entity is not None and entity.deleted_at is None and entity.valid_to is None else None
