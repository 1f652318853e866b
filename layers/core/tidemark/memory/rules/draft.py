"""What a predicate's pattern gives, and how it becomes a statement with its subject, dates and quote."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from tidemark.memory.dates import FUTURE, DateSpan, resolve
from tidemark.memory.model import EntityType, Importance, Link, Mention, Polarity, RelationType, SourceMessage, Statement

NAME_LENGTH = 255
# Whether the phrase goes on from its subject ("lives in Oslo"), belongs to it ("boat is called Marisol"), or is a sentence by itself.
Form = Literal["predicate", "possessive", "whole"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One predicate of a subject that is still open. `phrase` is the predicate in words, third person."""

    phrase: str
    entity_type: EntityType = "fact"
    category: str = "general"
    polarity: Polarity = "positive"
    importance: Importance = "medium"
    exclusive: str | None = None
    value: str | None = None
    ends: bool = False
    mention: Mention | None = None
    relation: RelationType | None = None
    properties: dict[str, str] = field(default_factory=dict)
    form: Form = "predicate"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose fact it is: the user, or somebody or something that has a name. `label` opens the sentence of a fact about others."""

    label: str = ""
    mention: Mention | None = None
    user: bool = True


USER = Subject()


def build(draft: Draft, subject: Subject, message: SourceMessage, quote: str, chinese: bool) -> Statement:
    """The statement of a draft about a subject."""
    spans = resolve(quote, message.at, future=_ahead(quote))
    name = _joined(subject.label, draft.phrase, chinese)
    person = subject.mention
    mentions = [mention for mention in (person, draft.mention) if mention]
    links: list[Link] = []
    if draft.mention and draft.relation:
        links.append(Link(source=person.name if person else None, target=draft.mention.name, relation_type=draft.relation))
    return Statement(
        name=name[:NAME_LENGTH],
        entity_type=draft.entity_type,
        description=_description(draft, name, subject, spans, chinese),
        subject=person.name if person else None,
        polarity=draft.polarity,
        importance=draft.importance,
        exclusive=draft.exclusive,
        value=draft.value,
        ends=draft.ends,
        valid_from=_valid_from(spans, message.at),
        properties={"category": draft.category, **_when(spans), **draft.properties},
        mentions=tuple(mentions),
        links=tuple(links),
        quote=quote,
        message_id=message.id,
    )


# A date without a year lies behind where the sentence tells something past, else ahead.
PAST_MARK = re.compile(
    r"\b(?:\w+ed|was|were|had|did|went|bought|got|met|saw|took|came|began|left|lost|ran|since|last|born)\b|[了过]"
    r"|从|自从|上",
    re.IGNORECASE,
)


def _ahead(quote: str) -> bool:
    return bool(FUTURE.search(quote)) or not PAST_MARK.search(quote)


def _joined(label: str, phrase: str, chinese: bool) -> str:
    return f"{label}{'' if chinese else ' '}{phrase}" if label else phrase


def _description(draft: Draft, name: str, subject: Subject, spans: Sequence[DateSpan], chinese: bool) -> str:
    """One sentence with its subject and its absolute dates."""
    if subject.label or draft.form == "whole":
        who = ""
    elif draft.form == "possessive":
        who = "用户的" if chinese else "The user's "
    else:
        who = "用户" if chinese else "The user "
    when = "; ".join(_days(span) for span in spans if not span.phrase[:4].isdigit())
    return f"{who}{name}{f'（{when}）' if chinese and when else f' ({when})' if when else ''}{'。' if chinese else '.'}"


def _days(span: DateSpan) -> str:
    """ "last week: 2023-05-15 to 2023-05-21", so that the words and the days stand together."""
    last = (span.end - timedelta(days=1)).date().isoformat()
    first = span.start.date().isoformat()
    return f"{span.phrase}: {first}" if first == last else f"{span.phrase}: {first} – {last}"


def _when(spans: Sequence[DateSpan]) -> dict[str, str]:
    if not spans:
        return {}
    span = spans[0]
    last = span.end - timedelta(days=1)
    stated = {"date": span.start.date().isoformat(), "date_phrase": span.phrase, "date_granularity": span.granularity}
    return stated if last.date() == span.start.date() else {**stated, "date_to": last.date().isoformat()}


def _valid_from(spans: Sequence[DateSpan], at: datetime) -> datetime:
    """The stated day where it lies in the past; what is announced for later is known from now."""
    past = [span.start for span in spans if span.start <= at and not (span.end > at and span.granularity in ("season", "year"))]
    return past[0] if past else at


def important(draft: Draft, floor: Importance) -> Draft:
    """The draft with at least this importance."""
    order: list[Importance] = ["low", "medium", "high"]
    return draft if order.index(draft.importance) >= order.index(floor) else replace(draft, importance=floor)
