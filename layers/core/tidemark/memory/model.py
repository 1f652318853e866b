"""The things durable memory is made of."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

EntityType = Literal["person", "preference", "skill", "project", "goal", "fact", "concept", "organization", "location", "custom"]
RelationType = Literal["prefers", "works_on", "knows", "uses", "works_at", "located_in", "has_goal", "related_to", "part_of"]
Polarity = Literal["positive", "negative"]
Importance = Literal["low", "medium", "high"]
Trust = Literal["user", "explicit", "assistant", "import", "api"]
LEAST_TRUSTED_FIRST: tuple[Trust, ...] = ("assistant", "import", "api", "user", "explicit")


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceMessage(Frozen):
    """A message as extraction reads it. `at` is its own time, in the zone in which it was said."""

    id: str
    conversation_id: str
    role: Literal["user", "assistant"]
    speaker: str | None = None
    content: str
    at: datetime
    trust: Trust = "user"


class Mention(Frozen):
    """A person, organization, place or project that a statement names."""

    name: str
    entity_type: EntityType
    description: str = ""  # what the statement tells of it in passing: "the user's sister"


class Link(Frozen):
    """A relation that a statement asserts. An end is the name of a mention, or None for the statement's own entity."""

    source: str | None
    target: str | None
    relation_type: RelationType


class Statement(Frozen):
    """One learned statement: what an extractor gives, and what becomes one entity with its mentions and links.

    `subject` is None for the user who speaks, else the name of the mention whose fact it is. `exclusive` names the predicate of which a
    subject has one value at a time ("home", "employer", "name", ...): a newer statement with the same subject and the same `exclusive`
    closes the older one at its `valid_from`. `ends` closes without a successor ("I no longer work at Acme"): `exclusive` then says what
    ended, `value` which one. `value` is the object in words (the city, the employer), used for comparison.
    """

    name: str = Field(max_length=255)
    entity_type: EntityType
    description: str = ""
    subject: str | None = None
    polarity: Polarity = "positive"
    importance: Importance = "medium"
    exclusive: str | None = None
    value: str | None = None
    ends: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    properties: dict[str, Any] = Field(default_factory=dict)
    mentions: tuple[Mention, ...] = ()
    links: tuple[Link, ...] = ()
    quote: str = ""
    message_id: str = ""
