"""What is known of models, and what is assumed of others."""

import pytest
from tidemark.models.registry import DEFAULT_WINDOW, OFFLINE_MODEL_ID, known_models, lookup


def test_an_unknown_model_has_the_documented_defaults() -> None:
    info = lookup("nobody/knows-this")
    assert (info.context_window, info.max_output_tokens, info.known) == (DEFAULT_WINDOW, None, False)
    assert info.factor == 1.0
    assert DEFAULT_WINDOW == 32_000


def test_the_offline_model_is_listed() -> None:
    info = lookup(OFFLINE_MODEL_ID)
    assert (info.context_window, info.max_output_tokens, info.known) == (32_000, 4_000, True)


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ("eu.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0"),
        ("arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4.1-mini", "gpt-4.1-mini"),
    ],
)
def test_profiles_and_snapshots_have_the_figures_of_their_model(given: str, listed: str) -> None:
    found, plain = lookup(given), lookup(listed)
    assert found.known
    assert found.id == given
    assert (found.context_window, found.max_output_tokens, found.factor) == (plain.context_window, plain.max_output_tokens, plain.factor)


def test_every_listed_figure_is_sane() -> None:
    for model_id in known_models():
        info = lookup(model_id)
        assert info.context_window >= 16_000
        assert 1.0 <= info.factor <= 3.0
        assert info.max_output_tokens is None or info.max_output_tokens < info.context_window
