"""AutoSage's table of callers, whole: every combination of who calls and what is allowed."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.scope import Scope, may_learn, may_store_explicitly, resolve
from tidemark.storage import keys
from tidemark.tenancy.model import KbMemoryMode, Mode, Retention

MODES: tuple[Mode, ...] = ("disabled", "durable")
KB_MODES: tuple[KbMemoryMode | None, ...] = (None, "disabled", "subject", "kb_restricted")
RETENTIONS: tuple[Retention, ...] = ("none", "explicit_only", "automatic")


def expected(dashboard: bool, subject: str | None, kb_mode: KbMemoryMode | None, mode: Mode, agent: bool) -> str | None:
    """The table in words, written independently of the rule."""
    if mode != "durable" or not agent:
        return None
    match kb_mode, dashboard, subject:
        case "disabled", _, _:
            return None
        case "kb_restricted", _, _:
            return "knowledge_base"
        case _, False, None:
            return None
        case _, True, None:
            return "tenant"
        case _:
            return "subject"


@pytest.mark.parametrize(
    ("dashboard", "subject", "kb_mode", "mode", "agent"), list(product((False, True), (None, "ada"), KB_MODES, MODES, (False, True)))
)
def test_every_caller(dashboard: bool, subject: str | None, kb_mode: KbMemoryMode | None, mode: Mode, agent: bool) -> None:
    base = "kb_1" if kb_mode else None
    found = resolve(
        dashboard=dashboard, external_subject_id=subject, knowledge_base_id=base, kb_mode=kb_mode, mode=mode, agent_enabled=agent
    )
    assert (found.kind if found else None) == expected(dashboard, subject, kb_mode, mode, agent)
    if found is not None:
        assert found.external_subject_id == (subject if found.kind == "subject" else None)
        assert found.knowledge_base_id == (base if found.kind == "knowledge_base" else None)


@pytest.mark.parametrize(("retention", "auto", "wanted", "scoped"), list(product(RETENTIONS, (False, True), (False, True), (False, True))))
def test_learning_needs_all_of_them(retention: Retention, auto: bool, wanted: bool, scoped: bool) -> None:
    scope = Scope(kind="tenant") if scoped else None
    assert may_learn(scope, retention, auto_extract=auto, wanted=wanted) == (retention == "automatic" and auto and wanted and scoped)
    assert may_store_explicitly(scope, retention) == (scoped and retention != "none")


Outside = st.text(min_size=1, max_size=30)


@given(Outside, Outside)
def test_two_subjects_never_share_a_key(one: str, other: str) -> None:
    first, second = (Scope(kind="subject", external_subject_id=subject).key for subject in (one, other))
    assert (first == second) == (one == other)


@given(st.lists(Outside, min_size=1, max_size=4), st.lists(Outside, min_size=1, max_size=4))
def test_parts_of_a_digest_cannot_run_into_each_other(one: list[str], other: list[str]) -> None:
    assert (keys.digest(*one) == keys.digest(*other)) == (one == other)


@given(Outside)
def test_no_subject_reaches_another_kind_of_scope(subject: str) -> None:
    key = Scope(kind="subject", external_subject_id=subject).key
    assert key.startswith("s.")
    assert set(key) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
