"""Only a request to remember is one, and each is kept whole."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.explicit import confirmation, parse, request_of, statements
from tidemark.memory.model import SourceMessage, Statement

AT = datetime(2024, 3, 13, tzinfo=UTC)

REQUESTS = [
    ("Remember this: the shed key hangs on nail 7.", "the shed key hangs on nail 7.", "en"),
    ("remember I'm left-handed", "I'm left-handed", "en"),
    ("Please remember that our gate closes at nine.", "our gate closes at nine.", "en"),
    ("Could you please remember that I park on level 3?", "I park on level 3", "en"),
    ("Don't forget that Olga is allergic to wasps.", "Olga is allergic to wasps.", "en"),
    ("The spare fuse is in drawer 2. Please remember that.", "The spare fuse is in drawer 2", "en"),
    ("Hi! Remember: my locker is 114.", "my locker is 114.", "en"),
    ("请记住，我周三不上班。", "我周三不上班。", "zh"),
    ("帮我记一下：仓库密码锁在二楼。", "仓库密码锁在二楼。", "zh"),
    ("我的车停在B2，请记住。", "我的车停在B2", "zh"),
    ("覚えておいて：鍵は棚の上です。", "鍵は棚の上です。", "ja"),
    ("鍵は棚の上です。覚えておいてください。", "鍵は棚の上です", "ja"),
    ("Recuerda que la llave está en el cajón.", "la llave está en el cajón.", "es"),
    ("Merk dir bitte: der Schlüssel hängt im Flur.", "der Schlüssel hängt im Flur.", "de"),
    ("Retiens que la clé est sous le pot.", "la clé est sous le pot.", "fr"),
    ("Souviens-toi qu'Anne est végétarienne.", "Anne est végétarienne.", "fr"),
]
OTHERS = [
    "Do you remember the shed key?", "What do you remember about me?", "I remember that the shed was red.", "Remember when we"
        " painted it?", "Don't remember this: it was red.",
    "Please do not remember that I was here.", "Can you remember where I parked?", "Remember this:", "Remember that.", "Remember?",
    "I can't remember: red or blue?", "She said \"remember this: red\".",
    "Translate: Remember this: it is red.", "You will remember that it was red.", "Remember how red it was", "你还记得吗？", "你记住了吗",
    "不要记住这件事", "我记得那天下雨。", "请记住", "これを覚えてる？", "覚えています。",
    "¿Recuerdas la llave?", "No recuerdes esto: rojo", "Erinnerst du dich an mich?", "Merk dir das nicht: rot", "Te souviens-tu de"
        " moi ?", "Ne retiens pas ceci : rouge", "", "   ",
]  # fmt: skip


def stored(text: str, policy: str = "refuse") -> list[Statement]:
    request = request_of(text)
    assert request is not None
    message = SourceMessage(id="m", conversation_id="c", role="user", content=text, at=AT)
    return statements(request, message, secrets="redact" if policy == "redact" else "refuse")


@pytest.mark.parametrize(("text", "content", "language"), REQUESTS)
def test_a_request_gives_its_content(text: str, content: str, language: str) -> None:
    request = parse(text)
    assert request is not None
    assert (request.content, request.language) == (content, language)
    assert content[:40] in confirmation(request)


@pytest.mark.parametrize("text", OTHERS)
def test_nothing_else_is_a_request(text: str) -> None:
    assert parse(text) is None


@given(st.text(max_size=80))
def test_any_text_is_read_without_failing(text: str) -> None:
    request = parse(text)
    assert request is None or request.content in text


@given(st.from_regex(r"\A[A-Za-z0-9 ,'-]{1,40}[A-Za-z0-9]\Z"))
def test_whatever_is_to_be_remembered_is_kept(content: str) -> None:
    """Every word of a plain sentence stands in what is stored, whether or not the rules understood it."""
    made = stored(f"The {content}.")
    said = " ".join(f"{item.name} {item.description}" for item in made).casefold()
    assert made
    assert all(word in said for word in content.casefold().split())


@pytest.mark.parametrize(("text", "content", "language"), REQUESTS)
def test_quotes_are_parts_of_the_message(text: str, content: str, language: str) -> None:
    made = stored(text)
    assert made
    assert all(item.quote and item.quote in text and item.message_id == "m" for item in made)


def test_several_facts_are_several_statements() -> None:
    made = stored("Remember that I live in Graz and work at Siemens. My cat is called Moss.")
    assert {"home", "employer", "name of:cat"} <= {item.exclusive for item in made}


@pytest.mark.parametrize("filler", [", ", "(", "no, my ", "!", "我，"])
def test_a_long_run_is_kept_word_for_word_and_read_at_once(filler: str) -> None:
    text = f"I like tea {filler * (19_000 // len(filler))}"
    request = request_of(text)
    assert request is not None
    [made] = statements(request, SourceMessage(id="m", conversation_id="c", role="user", content=text, at=AT))
    assert made.description == text.strip()


@pytest.mark.parametrize("sentence", ["好。", "ok! ", "Merci. "])
def test_a_page_of_short_sentences_is_no_request(sentence: str) -> None:
    assert parse(sentence * 4_000) is None


def test_the_same_request_gives_the_same_statements() -> None:
    assert stored("Remember this: wolves howl at dusk.") == stored("Remember this: wolves howl at dusk.")


def test_a_secret_is_refused_or_redacted() -> None:
    text = "Remember this: the key of the mail relay is sk-test-0a1b2c3d4e5f6a7b8c9d0e1f."
    request = parse(text)
    assert request is not None
    assert "sk-test" not in confirmation(request)
    assert stored(text) == []
    [kept] = stored(text, "redact")
    assert "sk-test" not in kept.model_dump_json()
    assert "mail relay" in kept.name


@pytest.mark.parametrize("text", ["...", "-", "   ", "", "?!"])
def test_nothing_to_remember_is_none(text: str) -> None:
    assert request_of(text) is None


def test_other_languages_are_kept_word_for_word() -> None:
    [spanish] = stored("Recuerda que mi abuela vive en Cuenca.")
    assert (spanish.name, spanish.entity_type) == ("mi abuela vive en Cuenca", "fact")
