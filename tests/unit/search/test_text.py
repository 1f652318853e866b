from concurrent.futures import ThreadPoolExecutor

import pytest
from tidemark.search.text import index_words, name_key, name_keys_in, query_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats were running", ["cat", "run"]),
        ("Ada's well-known café", ["ada", "well", "known", "cafe"]),
        ("don't", []),
        ("SMOKE-1!", ["smoke", "1", "smoke-1"]),
        ("user_id = 3.14", ["user", "id", "user_id", "3", "14", "3.14"]),
        ("colour", ["color"]),
        ("neighbours", ["neighbor"]),
        ("four hours of tour", ["four", "hour", "tour"]),
        ("混合检索", ["混", "合", "检", "索", "混合", "合检", "检索"]),
        ("ｶﾞｷﾞ", ["ガ", "ギ", "ガギ"]),
        ("🦀🦑", ["🦀", "🦑"]),
        ("👩🏽‍🚀", ["👩", "🚀"]),
        ("", []),
        ("© * | ?!", ["©"]),
    ],
)
def test_index_words(text: str, words: list[str]) -> None:
    assert index_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tea and tea", {"tea": 1.0}),
        ("检", {"检": 1.0}),
        ("检索", {"检": 0.3, "索": 0.3, "检索": 1.0}),
        ("我喜欢的颜色", {"喜": 0.3, "欢": 0.3, "颜": 0.3, "色": 0.3, "我喜": 1.0, "喜欢": 1.0, "欢的": 1.0, "的颜": 1.0, "颜色": 1.0}),
        ("的", {"的": 1.0}),
        ("what is it", {}),
        ("  ", {}),
    ],
)
def test_query_words_and_their_weights(text: str, words: dict[str, float]) -> None:
    assert query_words(text) == words


@pytest.mark.parametrize("text", ["SMOKE-1", "ops@harbour.example", "混合检索方案", "서울에 삽니다", "ＡＢＣ", "Straße", "🦀 crab"])
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert query_words(text).keys() <= set(index_words(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [("Project Halibut", " project  halibut "), ("ＡＣＭＥ", "acme"), ("Zoë", "zoe"), ("Tide 🌊", "tide"), ("SMOKE-1", "smoke 1")],
)
def test_names_that_are_one(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("C#", "C++"), ("Ann", "Anna"), ("🦀", "🦑")])
def test_names_that_are_two(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


def test_a_question_holds_the_names_that_are_whole_words_of_it() -> None:
    keys = name_keys_in("is New York nice?")
    assert {"new york", "york", "is new york nice"} <= keys
    assert keys.isdisjoint({"is", "yor", "new yor"})


def test_threads_do_not_spoil_each_others_stems() -> None:
    words = [f"{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}{'uvwxyzabcd'[n // 100]}ationally" for n in range(1000)]
    with ThreadPoolExecutor(8) as pool:
        stems = list(pool.map(index_words, words))
    assert all(stem[0].startswith(word[:3]) for word, stem in zip(words, stems, strict=True))
