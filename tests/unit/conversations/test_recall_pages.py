from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tidemark.conversations.context import RECALL_CHARACTERS, RecallItem, pages

AT = datetime(2026, 11, 30, tzinfo=UTC)


def item(number: int, length: int) -> RecallItem:
    content = (f"{number}:" + "x" * length)[:length]
    return RecallItem(id=f"msg_{number}", role="user", name=None, kind="text", content=content, created_at=AT, compaction_id=None)


@given(st.lists(st.integers(0, 40_000), max_size=8))
def test_a_walk_tells_everything_once_in_order_within_the_page_size(lengths: list[int]) -> None:
    items = [item(number, length) for number, length in enumerate(lengths)]
    told: dict[str, str] = {}
    order: list[str] = []
    place: tuple[int, int] | None = (0, 0)
    calls = 0
    while place is not None:
        page, place = pages(items, *place)
        assert sum(len(one.content) for one in page) <= RECALL_CHARACTERS
        assert page or place is None
        for one in page:
            told[one.id] = told.get(one.id, "") + one.content
            order.append(one.id)
        calls += 1
        assert calls <= 2 + sum(lengths) // RECALL_CHARACTERS + len(lengths)
    assert told == {one.id: one.content for one in items}
    assert order == sorted(order, key=lambda id: int(id.removeprefix("msg_")))
