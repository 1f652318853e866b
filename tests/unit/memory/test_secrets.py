"""Credentials are hidden; what only looks odd is kept."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.learning import screened
from tidemark.memory.model import Statement
from tidemark.memory.secrets import REDACTED, redact, redact_properties

SECRETS = [
    ("the key is sk-proj-Ab12Cd34Ef56Gh78Ij90", "sk-proj-Ab12Cd34Ef56Gh78Ij90"),
    ("use AKIAABCDEFGHIJKLMNOP now", "AKIAABCDEFGHIJKLMNOP"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("Authorization: Bearer abcdef1234567890abcdef", "abcdef1234567890abcdef"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJzdWIiOiIxIn0"),
    ("postgres://app:hunter2@db.example/x", "hunter2"),
    ("My password is correcthorse", "correcthorse"),
    ("the PIN for the vault is 4821", "4821"),
    ("我的密码是abc123xyz。", "abc123xyz"),
    ("card 4111 1111 1111 1111 exp 12/30", "4111 1111 1111 1111"),
    ("api_key=9f8e7d6c5b4a39281706f5e4", "9f8e7d6c5b4a39281706f5e4"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ("mi contraseña es girasol9", "girasol9"),
    ("my passphrase is correct horse battery staple", "correct horse battery staple"),
    ("my passphrase is correct horse battery staple and I live in Rome", "staple"),
    ('the pass phrase for the vault: "purple monkey dishwasher lamp".', "dishwasher"),
    ("my password is correct horse battery staple.", "battery"),
    ("AWS secret AKIAIOSFODNN7EXAMPLE / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY for AWS", "wJalrXUtnFEMI"),
]
HARMLESS = [
    "I live in Rome", "the launch code is 4417-B", "remember token SMOKE-1", "The password is too short", "phone +353 21 555"
        " 0148", "order 20310914123456",
    "commit 3f2a1b4c5d6e7f8091a2b3c4d5e6f70812345678", "invoice INV-88213 over 1,940 euros", "the key is under the mat",
    "see https://example.org/a:b", "我忘了密码",
    "v2.10.3-rc1", "ISBN 9780306406157", "my password is correct", "the secret of the cake", "token budget 4000",
    "my passphrase is correct",
    "my passphrase is stored in the blue safe", "the passphrase was changed last Tuesday morning",
    "the password is required for every login",
    "the secret is that we met in Rome", "the secret commit is 3f2a1b4c5d6e7f8091a2b3c4d5e6f708123456ab", "a seed phrase has twelve words",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_credentials_are_hidden(text: str, secret: str) -> None:
    safe, found = redact(text)
    assert found
    assert secret not in safe
    assert REDACTED in safe


@pytest.mark.parametrize("text", HARMLESS)
def test_what_people_want_remembered_is_kept(text: str) -> None:
    assert redact(text) == (text, False)


@given(st.text(max_size=60), st.sampled_from(SECRETS[:3]), st.text(max_size=60))
def test_a_marked_key_is_hidden_between_any_words(before: str, case: tuple[str, str], after: str) -> None:
    safe, found = redact(f"{before} {case[1]} {after}")
    assert found
    assert case[1] not in safe


def test_a_failing_detector_hides_everything() -> None:
    def broken(text: str) -> Iterable[tuple[int, int]]:
        raise ValueError(text)

    assert redact("harmless", [broken]) == (REDACTED, True)


def test_redacting_twice_changes_nothing() -> None:
    for text, _ in SECRETS:
        assert redact(redact(text)[0])[0] == redact(text)[0]


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_password",
        "Passphrase",
        "apiKey",
        "api-key",
        "API_KEY",
        "clientSecret",
        "access_token",
        "token",
        "password2",
        "pin",
        "密码",
    ],
)
def test_a_property_whose_key_names_a_credential_is_hidden(key: str) -> None:
    assert redact_properties({key: "hunter2xyz"}) == {key: REDACTED}
    assert redact_properties({"a": [{key: {"value": "hunter2xyz", "old": ["x1"]}}]}) == {
        "a": [{key: {"value": REDACTED, "old": [REDACTED]}}]
    }


def test_credentials_in_properties_are_hidden_at_any_depth() -> None:
    found = redact_properties({"k": "AKIAIOSFODNN7EXAMPLE", "a": {"b": ["my password is hunter2xyz", 3, None]}, "pin": 4821})
    assert found == {"k": REDACTED, "a": {"b": [f"my password is {REDACTED}", 3, None]}, "pin": REDACTED}
    assert redact_properties(found) == found


def test_other_properties_are_kept() -> None:
    kept = {
        "token_budget": "4000", "tokens": 4000, "max_tokens": "4000", "key": "C minor",
        "password_changed_at": "2031-01-01", "secretary": "Mia",
        "needs_password": True, "passport": "blue", "monkey": "Bo", "spin": "left",
        "role": {"title": "chef", "since": 2024}, "password": None,
    }  # fmt: skip
    assert redact_properties(kept) == kept


@pytest.mark.parametrize(
    "properties", [{"password": "hunter2xyz"}, {"login": {"password": "hunter2xyz"}}, {"notes": ["my password is hunter2xyz"]}]
)
def test_a_learned_statement_hides_credentials_in_properties_alone(properties: dict[str, Any]) -> None:
    clean, found = screened(Statement(name="lift", entity_type="fact", description="The lift has a code.", properties=properties))
    assert found
    assert "hunter2xyz" not in clean.model_dump_json()
