import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark import ids

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
Keys = st.text(alphabet=DIGITS, min_size=ids.KEY_LENGTH, max_size=ids.KEY_LENGTH).map(lambda key: "0" + key[1:])


@given(Keys)
def test_a_new_key_sorts_behind_any_other_whatever_its_writer_s_clock_said(after: str) -> None:
    key = ids.new_item_key(after)
    assert key > after
    assert len(key) == ids.KEY_LENGTH
    assert set(key) <= set(DIGITS)


def test_keys_of_one_millisecond_sort_in_their_order() -> None:
    keys = [ids.new_item_key(None)]
    for _ in range(2000):
        keys.append(ids.new_item_key(keys[-1]))
    assert keys == sorted(set(keys))


@given(Keys, st.integers(0, ids.SLOTS - 1))
def test_a_message_id_tells_its_item_and_its_place(key: str, slot: int) -> None:
    message = ids.message_id(key, slot)
    assert ids.is_id(message, "msg")
    assert (ids.item_key(message), ids.slot(message)) == (key, slot)


@given(Keys, st.integers(0, ids.SLOTS - 2))
def test_slots_and_keys_sort_as_messages_do(key: str, slot: int) -> None:
    here, beside = ids.message_id(key, slot), ids.message_id(key, slot + 1)
    behind = ids.message_id(ids.new_item_key(key), 0)
    assert here < beside < behind


@pytest.mark.parametrize(
    "value",
    [
        "",
        "cnv_",
        "cnv_x",
        "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAU#x",
        "cnv_01arz3ndektsv4rrffq69g5fav",
        "cnv_81ARZ3NDEKTSV4RRFFQ69G5FAV",
        "cnv_01ARZ3NDEKTSV4RRFFQ69G5FAV\n",
    ],
)
def test_what_is_no_id_of_a_kind(value: str) -> None:
    assert not ids.is_id(value, "cnv")


def test_ids_are_of_their_kind() -> None:
    assert ids.is_id(ids.new_id("cnv"), "cnv")
    assert len({ids.new_id("cnv") for _ in range(1000)}) == 1000
