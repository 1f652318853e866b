from datetime import UTC, datetime

from tidemark.search.documents import Turn, memory_document, message_document, passage

AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_message_is_embedded_dated_and_attributed_and_keyed_with_the_turns_before() -> None:
    document = message_document(
        id="m", tenant_id="t", scope="s", text="Yes, in June.", speaker="Ada", role="user", created_at=AT, conversation_id="c", sequence=4,
        session=2, earlier=[Turn("Ada", "Hi"), Turn("Bo", "Hello"), Turn("Bo", "Will you run in Bergen?" + "x" * 1000)],
    )  # fmt: skip
    assert passage(document) == "[8 May 2023] Ada: Yes, in June."
    assert document.context.startswith("Bo: Hello\nBo: Will you run in Bergen?xxx")
    assert len(document.context) < 700
    assert (document.text, document.position, document.session, document.updated_at) == ("Yes, in June.", 4, 2, AT)


def test_a_memory_is_embedded_by_name_and_description_and_keyed_with_its_other_words() -> None:
    document = memory_document(
        id="e", tenant_id="t", scope="s", name="Halibut", description="A furnace controller.", entity_type="project", occurred_at=AT,
        updated_at=AT, aliases=["Project H"], subject="Ada", properties="due: October",
    )  # fmt: skip
    assert passage(document) == "Halibut: A furnace controller."
    assert document.context == "Project H\nAda\ndue: October"
    assert document.name == "Halibut"


def test_a_memory_without_description_is_its_name() -> None:
    document = memory_document(
        id="e", tenant_id="t", scope="s", name="Bo", description="", entity_type="person", occurred_at=AT, updated_at=AT
    )  # fmt: skip
    assert passage(document) == "Bo"
