"""Which questions nearness alone does not answer."""

import pytest
from tidemark.memory.questions import is_doubtful


@pytest.mark.parametrize(
    "question",
    [
        "what is a black hole", "Who invented the telephone?", "how do volcanoes erupt", "explain quantum entanglement",
        "write a haiku about autumn", "is water wet", "zzqqxx", "qwpoeiru", "tq tq tq", "hjk", "龘龖龕", "鼑馵鐮镨",
    ],
)  # fmt: skip
def test_questions_about_nobody_and_slips_of_the_keyboard_are_doubtful(question: str) -> None:
    assert is_doubtful(question)


@pytest.mark.parametrize(
    "question",
    [
        "what is my job", "Where does she live?", "what's the user’s favourite tea", "How should you format replies?", "home city",
        "food allergies", "SMOKE-1 token", "port 5433", "88-1042", "", "???",
        "我住在哪里", "周会几点开", "いつ京都に行きますか", "나는 어디에 살아?",
        "¿dónde está Neil?", "где я живу", "missä asun",
    ],
)  # fmt: skip
def test_questions_about_somebody_keywords_and_other_languages_are_not(question: str) -> None:
    assert not is_doubtful(question)
