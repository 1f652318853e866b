"""How CLIO matches words in what was said: an exact phrase scores 1.0, else 0.9 * matched / terms, with at least half of the terms."""

import re
import unicodedata
from dataclasses import dataclass

EXCERPT_CHARACTERS = 480
EXACT, PARTIAL = 1.0, 0.9


@dataclass(frozen=True, slots=True)
class Match:
    score: float
    terms: tuple[str, ...]
    start: int  # where in the text the excerpt should lie


def folded(text: str) -> str:
    """Case and compatibility forms folded, one character for one, so that places in both texts agree."""
    return "".join(_fold(character) for character in text)


def _fold(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character).casefold()
    return plain if len(plain) == 1 else character


def match(text: str, query: str) -> Match | None:
    """How well a text has the words of a query; None below half of them."""
    haystack, needle = folded(text), " ".join(folded(query).split())
    terms = list(dict.fromkeys(needle.split()))
    if not terms:
        return None
    found = {term: place for term in terms if (place := _find(haystack, term)) >= 0}
    exact = _find(haystack, needle)
    if exact >= 0:
        return Match(EXACT, tuple(terms), exact)
    if 2 * len(found) < len(terms) or not found:
        return None
    return Match(PARTIAL * len(found) / len(terms), tuple(found), min(found.values()))


def _find(haystack: str, needle: str) -> int:
    """Whole words where the script has spaces, any place where it has none."""
    pattern = r"\s+".join(map(re.escape, needle.split()))
    left = r"(?<!\w)" if _spaced(needle[0]) else ""
    right = r"(?!\w)" if _spaced(needle[-1]) else ""
    found = re.search(f"{left}{pattern}{right}", haystack)
    return found.start() if found else -1


def _spaced(character: str) -> bool:
    """Whether a letter belongs to a script that separates its words. Korean does, but its words carry endings."""
    if not (character.isalnum() or character == "_"):
        return False
    return not re.match(
        r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]", character
    )


def excerpt(text: str, start: int) -> str:
    """At most 480 characters around a place."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    begin = max(0, min(start - EXCERPT_CHARACTERS // 4, len(text) - EXCERPT_CHARACTERS))
    return text[begin : begin + EXCERPT_CHARACTERS]
