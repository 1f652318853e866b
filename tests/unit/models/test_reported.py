"""What a provider's report says of a count."""

from hypothesis import given
from hypothesis import strategies as st
from tidemark.models import tokenizer
from tidemark.models.reported import HIGHEST_FACTOR, TOLERANCE, needed_factor, share, uncounted

counts = st.integers(1, 1_000_000)


@given(plain=counts, factor=st.floats(1.0, HIGHEST_FACTOR))
def test_the_needed_factor_covers_what_was_reported(plain: int, factor: float) -> None:
    reported = int(plain * factor)
    assert tokenizer.scaled(plain, needed_factor(plain, reported)) >= reported


@given(counted=counts, reported=counts)
def test_count_and_uncounted_are_a_report_or_within_the_tolerance(counted: int, reported: int) -> None:
    missing = uncounted(counted, reported)
    assert missing >= 0
    if reported <= HIGHEST_FACTOR * counted:
        assert counted + missing >= reported - TOLERANCE
        assert missing == 0 or counted + missing == reported
    else:
        assert missing == 0


@given(tokens=counts, part=st.integers(0, 1000), whole=st.integers(0, 1000))
def test_a_share_is_never_more_than_all_and_all_of_the_whole(tokens: int, part: int, whole: int) -> None:
    assert 0 <= share(tokens, part, whole) <= tokens
    assert share(tokens, whole, whole) == (tokens if whole else 0)
