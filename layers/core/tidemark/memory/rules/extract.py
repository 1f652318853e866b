"""The rule-based extractor: from what users said to statements, sentence by sentence, each with its exact quote."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tidemark.memory.model import SourceMessage, Statement
from tidemark.memory.rules import chinese, english
from tidemark.memory.rules.draft import build
from tidemark.memory.rules.kinds import kind, takes_back
from tidemark.memory.rules.people import People, role_of
from tidemark.memory.rules.source import QUOTED, own_words
from tidemark.memory.secrets import has_secret
from tidemark.text import language, spans

# A sentence longer than this is pasted text or a list, not something that somebody tells of themselves.
LONGEST_SENTENCE = 400


def extract_statements(messages: Sequence[SourceMessage], known: Mapping[str, str] | None = None) -> list[Statement]:
    """What the user messages state. `known` maps roles to the names of persons ("partner": "Mira") from what is already remembered."""
    known = known or {}
    made = _read(messages, known)
    named = _named_later(made)
    return _read(messages, {**named, **known}) if named else made


def _read(messages: Sequence[SourceMessage], known: Mapping[str, str]) -> list[Statement]:
    people = People.known(known)
    users = (message for message in messages if message.role == "user")
    return _distinct([statement for message in users for statement in _statements(message, people)])


def _named_later(made: Sequence[Statement]) -> dict[str, str]:
    """Roles that stood for a person before the one name behind them was said: "my sister lives in Lund. Her name is Ida." """
    names: dict[str, set[str]] = {}
    for statement in made:
        role, person = statement.properties.get("role"), statement.properties.get("person")
        if role and person:
            names.setdefault(role, set()).add(person)
    unnamed = {role_of(mention.name) for statement in made for mention in statement.mentions}
    return {role: next(iter(found)) for role, found in names.items() if len(found) == 1 and role in unnamed}


def _statements(message: SourceMessage, people: People) -> Iterator[Statement]:
    text = own_words(message.content)
    sentences = [message.content[start:end] for start, end in spans(text)]
    for sentence, next_one in pairwise([*sentences, ""]):
        if takes_back(next_one):
            continue
        if len(sentence) > LONGEST_SENTENCE or _quotes_others(sentence) or has_secret(sentence):
            continue
        if kind(sentence) == "assertion":
            yield from of_sentence(sentence, message, people)


def of_sentence(sentence: str, message: SourceMessage, people: People) -> Iterator[Statement]:
    """The statements of one assertion."""
    in_chinese = language(sentence) == "zh"
    read = chinese.drafts if in_chinese else english.drafts
    if not in_chinese and language(sentence) != "en":
        return
    for draft, subject in read(sentence, message, people):
        if draft.phrase.strip():
            yield build(draft, subject, message, sentence, in_chinese)


def _quotes_others(sentence: str) -> bool:
    """Whether a sentence begins with somebody's words in quotation marks, or most of it stands in them."""
    first = QUOTED.match(sentence)
    if first and len(first[0].split()) > 2 and len(first[0]) < len(sentence.rstrip(" .")):
        return True
    return sum(len(found[0]) for found in QUOTED.finditer(sentence)) * 2 > len(sentence)


def _distinct(statements: Sequence[Statement]) -> list[Statement]:
    """Each statement once a message; the same one said again later stays, since it confirms."""
    kept: dict[tuple[str, str, str | None], Statement] = {}
    for statement in statements:
        kept.setdefault((statement.message_id, statement.name.casefold(), statement.subject), statement)
    return list(kept.values())
