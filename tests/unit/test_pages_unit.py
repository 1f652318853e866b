import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.errors import MalformedError
from tidemark.pages import PAGE_BYTES, Cursors, fitting

CURSORS = Cursors("secret")
Parts = st.lists(st.none() | st.text(max_size=20) | st.integers(), max_size=4).map(tuple)


@given(st.text(max_size=100), Parts)
def test_a_cursor_comes_back_to_its_list(place: str, of: tuple[object, ...]) -> None:
    assert CURSORS.read(CURSORS.write(place, *of), *of) == place


@given(st.text(max_size=30), Parts, Parts)
def test_no_cursor_fits_another_list(place: str, one: tuple[object, ...], other: tuple[object, ...]) -> None:
    if one == other:
        return
    with pytest.raises(MalformedError) as caught:
        CURSORS.read(CURSORS.write(place, *one), *other)
    assert caught.value.code == "invalid_cursor"


def test_neighbouring_filters_do_not_run_into_each_other() -> None:
    with pytest.raises(MalformedError):
        CURSORS.read(CURSORS.write("p", "ab", "c"), "a", "bc")


@given(st.text(max_size=60))
def test_whatever_somebody_invents_is_refused(cursor: str) -> None:
    with pytest.raises(MalformedError):
        CURSORS.read(cursor, "list")


@given(st.data())
def test_a_changed_cursor_is_refused(data: st.DataObject) -> None:
    cursor = CURSORS.write("some place", "list")
    place = data.draw(st.integers(0, len(cursor) - 1))
    letter = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123456789-_"))
    changed = cursor[:place] + letter + cursor[place + 1 :]
    try:
        assert CURSORS.read(changed, "list") == "some place"  # the last letter carries bits that mean nothing
        assert changed == cursor or place == len(cursor) - 1
    except MalformedError:
        assert changed != cursor


def test_a_cursor_of_another_secret_is_refused() -> None:
    with pytest.raises(MalformedError):
        CURSORS.read(Cursors("other").write("p", "list"), "list")


def test_none_is_the_beginning() -> None:
    assert CURSORS.read(None, "list") is None


@given(st.lists(st.integers(0, 2 * PAGE_BYTES), max_size=20))
def test_a_page_ends_early_but_never_empty(sizes: list[int]) -> None:
    page = fitting(sizes, lambda size: size)
    assert page == sizes[: len(page)]
    assert bool(page) == bool(sizes)
    assert len(page) <= 1 or sum(page) <= PAGE_BYTES
    assert len(page) == len(sizes) or sum(sizes[: len(page) + 1]) > PAGE_BYTES
