"""What the service is for: what was said in one conversation is known in the next one of the same person, and to nobody else."""

import pytest

from tests.support.world import World


def test_what_was_remembered_in_one_conversation_answers_in_another(aws: World) -> None:
    ada = aws.key(aws.tenant(), "ada")
    confirmed = ada.say(ada.conversation(), "Remember this: my sister Ingrid lives in Bergen.")
    assert confirmed["metadata"]["finish_reason"] == "memory_confirmation"
    assert confirmed["message"]["kind"] == "memory_confirmation"
    answered = ada.say(ada.conversation(), "Where does my sister live?")
    assert answered["metadata"]["memory_used"] is True
    assert "Bergen" in answered["message"]["content"]


def test_what_was_said_in_passing_is_learned_after_the_cooldown(aws: World) -> None:
    ada = aws.key(aws.tenant(), "ada")
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme as an auditor.")
    assert ada.memories() == []
    aws.learn()
    assert any("Acme" in memory["name"] for memory in ada.memories())
    assert "Acme" in ada.say(ada.conversation(), "Where do I work?")["message"]["content"]


@pytest.mark.parametrize("words", ["记住：我对花生过敏。", "请记住我妹妹住在卑尔根。"])
def test_chinese_requests_are_stored_and_confirmed_in_chinese(aws: World, words: str) -> None:
    ada = aws.key(aws.tenant(), "ada")
    confirmed = ada.say(ada.conversation(), words)
    assert confirmed["metadata"]["finish_reason"] == "memory_confirmation"
    assert any("\u4e00" <= character <= "\u9fff" for character in confirmed["message"]["content"])
    assert ada.memories() != []


def test_nobody_else_recalls_it(aws: World) -> None:
    tenant = aws.tenant()
    ada, bob, other = aws.key(tenant, "ada"), aws.key(tenant, "bob"), aws.key(aws.tenant(), "ada")
    ada.say(ada.conversation(), "Remember this: my sister Ingrid lives in Bergen.")
    for stranger in (bob, other):
        answered = stranger.say(stranger.conversation(), "Where does my sister live?")
        assert answered["metadata"]["memory_used"] is False
        assert "Bergen" not in answered["message"]["content"]
