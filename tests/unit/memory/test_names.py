"""Which names are one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.names import fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Berlin", "ＢＥＲＬＩＮ"),
        ("Weiß", "WEISS"),
        ("Moss 🌿", "Moss"),
        ("🌿 Moss", "moss 🍃"),
        ("Zoë", "Zoe\u0308"),
        ("ﾎﾞｰﾄ", "ボート"),
        ("Ada\u3000B", " ada  b "),
        ("a\u200bb", "ab"),
    ],
)
def test_forms_of_one_name_fold_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"), [("Marta", "Marka"), ("C", "C#"), ("🍎", "🍐"), ("Zoë", "Zoe"), ("小李", "小林"), ("v1", "v1.0"), ("A-1", "A1")]
)
def test_near_names_stay_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing(name: str) -> None:
    assert fold(fold(name)) == fold(name)


@given(st.text(min_size=1, max_size=20))
def test_case_and_outer_space_never_matter(name: str) -> None:
    assert fold(f"  {name} ") == fold(name)
