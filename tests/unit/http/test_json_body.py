import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.errors import InvalidError, MalformedError
from tidemark.http import json_body

Values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), Values, max_size=4))
def test_an_object_is_read_as_it_was_written(value: dict[str, object]) -> None:
    assert json_body.loads(json.dumps(value)) == value
    assert json_body.loads(json_body.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":}',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        "{'a':1}",
        '{"a":1} x',
        "[" * 100_000,
        '{"a":1,"a":1}',
        '{"b":[{"a":1,"\\u0061":2}]}',
    ],
)
def test_what_is_no_json_is_malformed(text: str) -> None:
    with pytest.raises(MalformedError) as caught:
        json_body.loads(text)
    assert caught.value.code == "malformed_json"


@pytest.mark.parametrize("text", ["[]", '"x"', "5", "null", "true"])
def test_other_json_than_an_object_is_invalid(text: str) -> None:
    with pytest.raises(InvalidError):
        json_body.loads(text)
