"""Predicates of which a subject has one value at a time, as keys: "home", "preference:espresso", "favourite:coffee"."""

import re

from tidemark.memory.model import Statement
from tidemark.memory.names import fold
from tidemark.memory.records import StoredEntity

PREFERENCE, FAVOURITE, SKILL = "preference", "favourite", "skill"
ARTICLE, PLURAL = re.compile(r"^(?:an?|the) (?=\w)"), re.compile(r"(?<=[a-z]{2}[^s\W])s$")


def exclusive(kind: str, thing: str) -> str:
    return f"{kind}:{fold(thing)}"


def preference(thing: str) -> str:
    """The predicate of liking or disliking a thing: one or many of it ("a dog lover", "likes dogs") is the same preference."""
    return exclusive(PREFERENCE, PLURAL.sub("", ARTICLE.sub("", fold(thing))))


def is_of(predicate: str | None, kind: str) -> bool:
    return predicate is not None and predicate.startswith(f"{kind}:")


def liking(statement: Statement) -> str | None:
    """The predicate of the liking that a favourite implies: who calls espresso the favourite coffee likes espresso."""
    if not is_of(statement.exclusive, FAVOURITE) or not statement.value or statement.polarity == "negative" or statement.ends:
        return None
    return preference(statement.value)


def same(former: StoredEntity, statement: Statement) -> bool:
    """Whether both say the same value of their predicate, in whatever written form. Of a preference that holds it is the polarity."""
    if is_of(statement.exclusive, PREFERENCE) and not statement.ends:
        return former.polarity == statement.polarity
    mine, theirs = statement.value or statement.name, former.value or former.name
    return fold(mine) == fold(theirs)


def restates(former: StoredEntity, statement: Statement) -> bool:
    """Whether a statement says what holds already, only in other words. How somebody has a skill (learns it, teaches it) is no wording."""
    return (
        not is_of(statement.exclusive, SKILL)
        and statement.valid_to is None
        and (former.entity_type, former.polarity) == (statement.entity_type, statement.polarity)
        and fold(former.name) != fold(statement.name)
        and same(former, statement)
    )
