"""How a message or a memory becomes a searchable document: which words stand in its key, and which text its vector is made of.

The vector is made of the dated, attributed text alone; the lexical key has the turns in front of it too, because an answer often leaves
out the words that the question before it said (docs/quality.md, "Retrieval").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tidemark.models.ports import Embedder, ModelError
from tidemark.search.port import Document

EARLIER_TURNS = 2
_EARLIER_CHARACTERS = 600  # of each earlier turn: a long reply must not drown the message behind it


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier message of the same session, as it stands in a key."""

    speaker: str
    text: str


def message_document(
    *,
    id: str,
    tenant_id: str,
    scope: str,
    text: str,
    speaker: str,
    role: str,
    created_at: datetime,
    conversation_id: str,
    sequence: int,
    session: int,
    workspace_id: str = "",
    earlier: Sequence[Turn] = (),
) -> Document:
    """`speaker` is the message's name, or its role where it has none; `earlier` those in front of it in its session, oldest first."""
    return Document(
        id=id,
        kind="message",
        tenant_id=tenant_id,
        scope=scope,
        text=text,
        context="\n".join(f"{turn.speaker}: {turn.text[:_EARLIER_CHARACTERS]}" for turn in earlier[-EARLIER_TURNS:]),
        occurred_at=created_at,
        updated_at=created_at,
        conversation_id=conversation_id,
        workspace_id=workspace_id,
        speaker=speaker,
        role=role,
        position=sequence,
        session=session,
    )


def memory_document(
    *,
    id: str,
    tenant_id: str,
    scope: str,
    name: str,
    description: str,
    entity_type: str,
    occurred_at: datetime,
    updated_at: datetime,
    aliases: Sequence[str] = (),
    about: str = "",
    subject: str = "",
    properties: str = "",
    speaker: str = "",
    conversation_id: str = "",
    workspace_id: str = "",
) -> Document:
    """The embedded text is "name: description", and what that is about where it does not say so itself; aliases, the subject's name and
    the properties' words are findable besides."""
    text = f"{name}: {description}" if description else name
    return Document(
        id=id,
        kind="memory",
        tenant_id=tenant_id,
        scope=scope,
        text=f"{text} ({about})" if about else text,
        context="\n".join(part for part in (*aliases, subject, properties) if part),
        name=name,
        entity_type=entity_type,
        occurred_at=occurred_at,
        updated_at=updated_at,
        conversation_id=conversation_id,
        workspace_id=workspace_id,
        speaker=speaker,
    )


def passage(document: Document) -> str:
    """What a document's vector is made of."""
    if document.kind == "memory":
        return document.text
    return f"[{spoken_date(document.occurred_at)}] {document.speaker}: {document.text}"


def own_words(document: Document) -> str:
    """What the lexical arm reads of a document itself; its context comes on top."""
    return passage(document)


def with_vectors(documents: Sequence[Document], embedder: Embedder) -> list[Document]:
    """Raises ModelError, also where the embedder answers fewer vectors than it was given texts: the rest would belong to others."""
    vectors = embedder.embed_passages([passage(document) for document in documents])
    if len(vectors) != len(documents):
        raise ModelError(f"{len(vectors)} vectors for {len(documents)} texts")
    return [replace(document, vector=vector) for document, vector in zip(documents, vectors, strict=True)]


def spoken_date(moment: datetime) -> str:
    """ "8 May 2023": the way people write a day in their questions."""
    return f"{moment.day} {moment:%B} {moment.year}"
