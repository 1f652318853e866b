"""From text to the words that are indexed and asked for, in any script.

Words of scripts with spaces are folded (case, width, Latin and Greek diacritics, British spelling) and stemmed as English; codes, paths,
addresses and versions stay whole beside their parts. Runs of scripts without spaces become characters and pairs of neighbours. A symbol
such as an emoji is a word. There is no query syntax: whatever a question holds is words or nothing.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Any

# Scripts that run on without spaces (Thai, Lao, Burmese, Khmer, kana, Han) and Hangul, whose particles stick to the word.
_RUN = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Signs inside a word that `\w` leaves out: combining marks, Hebrew, Arabic and Indic vowels.
_LETTER = rf"(?:(?![{_RUN}_])[\w\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff])"
_CHUNK = rf"{_LETTER}+(?:[._\-/\\@:+#&=~%'’]+{_LETTER}+)*(?:\+\+|[+#](?!\w))?"
_TOKEN = re.compile(rf"(?P<run>[{_RUN}]+)|(?P<chunk>{_CHUNK})|(?P<symbol>[^\w\s])")
_PART = re.compile(rf"{_LETTER}+")
_LATIN_NAME = re.compile(rf"[{_RUN}]|{_LETTER}+|[^\w\s]")
_INVISIBLE = dict.fromkeys([0x00AD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206F), *range(0xFE00, 0xFE10)])
_UNDECOMPOSED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ё": "е"})
_BRITISH = re.compile(
    r"\b(col|fav|flav|hon|hum|lab|neighb|behavi|harb|rum|sav|vap|od|arm|glam|endeav|vig|parl|ard|cand|clam|ranc|splend|val|tum)our"
)

_STOP_WORDS = """
a about above after again against all am an and any are aren as at be because been before being below between both but by can
cannot could couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn have haven
having he her here hers herself him himself his how i if in into is isn it its itself just ll m me more most mustn my myself
no nor not now of off on once only or other our ours ourselves out over own re s same shan she should shouldn so some such t
than that the their theirs them themselves then there these they this those through to too under until up ve very was wasn we
were weren what when where which while who whom whose why will with won would wouldn you your yours yourself yourselves
"""
_STOP = frozenset(_STOP_WORDS.split())
# Particles and pronouns that nearly every sentence of Chinese or Japanese holds; alone in a question they are still asked for.
_STOP_CHARACTERS = frozenset(
    "的了吗呢吧啊是我你他她它们这那有在和与及或就都也很还么什谁哪怎为被把给让个"
    "のはがをにでともへやかよねだてたなりるすしいくうんれさまこそあ"
)
_LONE_CHARACTER = 0.3  # of a longer run: many words share a character and little else
_SYMBOLS_IN_NAMES = frozenset("+#&@%$*=^|<>\\`")

_QUERY_CHARACTERS = 4_000  # a question longer than this is asked by its beginning
_NAME_TOKENS = 200
_LONGEST_NAME = 12  # words, or characters of a script without spaces


def index_words(text: str) -> list[str]:
    """Every word of a document, repeated as often as it stands there."""
    return [word for kind, token in _tokens(text) for word in (_run_words(token) if kind == "run" else _plain_words(kind, token))]


def query_words(text: str) -> dict[str, float]:
    """The distinct words a question asks for, and what each counts. Empty when it says nothing but stop words or punctuation."""
    words: dict[str, float] = {}
    for kind, token in _tokens(text[:_QUERY_CHARACTERS]):
        asked = _run_query_words(token) if kind == "run" else dict.fromkeys(_plain_words(kind, token), 1.0)
        words.update({word: max(weight, words.get(word, 0.0)) for word, weight in asked.items()})
    return words


def name_key(name: str) -> str:
    """A name as it is compared: folded words, one space apart; emoji and punctuation only where nothing else remains."""
    return " ".join(_name_tokens(name)) or fold(name).strip()


def name_keys_in(query: str) -> set[str]:
    """Every name that a question could hold as whole words, as `name_key` gives them, and the question itself."""
    tokens = _name_tokens(query[:_QUERY_CHARACTERS])[:_NAME_TOKENS]
    spans = (tokens[start:end] for start in range(len(tokens)) for end in range(start + 1, min(start + _LONGEST_NAME, len(tokens)) + 1))
    return {" ".join(span) for span in spans if _can_be_a_name(span)} | {name_key(query[:_QUERY_CHARACTERS])} - {""}


def fold(text: str) -> str:
    """One form for what people write in several: width, case, invisible signs, Latin and Greek diacritics."""
    return _without_diacritics(unicodedata.normalize("NFKC", text).translate(_INVISIBLE).casefold()).translate(_UNDECOMPOSED)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(fold(text)):
        yield str(match.lastgroup), match.group()


def _plain_words(kind: str, token: str) -> list[str]:
    if kind == "symbol":
        return [token] if unicodedata.category(token) == "So" else []
    parts = _PART.findall(token)
    words = [_stem(part) for part in parts if part not in _STOP]
    return [*words, token] if _is_code(token, parts) else words


def _is_code(token: str, parts: list[str]) -> bool:
    """Whether a token means more whole than in its parts: SMOKE-1, a@b.c, user_id, 3.14, c++; but not well-known or Ada's."""
    return token != parts[0] and not all(character.isalpha() or character in "-'’" for character in token)


def _run_words(run: str) -> list[str]:
    return [*run, *_pairs(run)]


def _run_query_words(run: str) -> dict[str, float]:
    if len(run) == 1:
        return {run: 1.0}
    pairs = [pair for pair in _pairs(run) if not _STOP_CHARACTERS.issuperset(pair)]
    characters = [character for character in run if character not in _STOP_CHARACTERS]
    return dict.fromkeys(characters, _LONE_CHARACTER) | dict.fromkeys(pairs or _pairs(run), 1.0)


def _pairs(run: str) -> list[str]:
    return [run[position : position + 2] for position in range(len(run) - 1)]


_stemming = Lock()  # a stemmer keeps the word it works on in itself


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    """Loaded at the first word: the package brings all of its languages along, 30 ms that a cold start should not pay."""
    import snowballstemmer  # type: ignore[import-untyped]  # noqa: PLC0415

    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    with _stemming:
        return str(_stemmer().stemWord(_BRITISH.sub(r"\1or", word)))


def _without_diacritics(text: str) -> str:
    return text if text.isascii() else "".join(_bare(character) for character in text)


@lru_cache(maxsize=4_096)
def _bare(character: str) -> str:
    base = unicodedata.normalize("NFD", character)[0]
    return base if unicodedata.name(base, "").startswith(("LATIN", "GREEK")) else character


def _name_tokens(text: str) -> list[str]:
    return [token for token in _LATIN_NAME.findall(fold(text)) if token[0].isalnum() or token in _SYMBOLS_IN_NAMES]


def _can_be_a_name(span: list[str]) -> bool:
    """A stop word or a single character of a script without spaces is a name only where it is the whole question."""
    return any(token not in _STOP for token in span) and (len(span) > 1 or not re.fullmatch(rf"[{_RUN}]", span[0]))
