"""What a question says about itself before anything is searched."""

import re

from tidemark.models import tokenizer
from tidemark.text import CJK

# The words with which people speak of themselves, of the user and of persons known.
PERSONS = re.compile(
    r"(?<!\w)(?:i|me|my|mine|myself|we|us|our|ours|ourselves|user|you|your|yours|he|him|his|she|her|hers|they|them|their|theirs)(?!\w)",
    re.IGNORECASE,
)
# A whole question or a task, where a few words such as "home city" ask for something that is known of somebody.
WORLD = re.compile(
    r"(?:(?:what|who|when|where|why|how|which)(?:'s)?\s+\w+|(?:is|are|was|were|do|does|did|can|could|should|will)\s+\w+"
    r"|(?:explain|describe|define|write|convert|translate|summari[sz]e|calculate|compute|list|compare|solve|generate|draw)\s+\w+)",
    re.IGNORECASE,
)
LATIN_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
SHORTEST_WORD = 3
# Characters a token from which on the vocabulary knows a word, and tokens a character above which it does not know Chinese or Japanese.
KNOWN, RARE = 3.5, 1.6


def is_doubtful(question: str) -> bool:
    """Whether nearness says little: an English question or task that speaks of nobody, or words that no vocabulary holds.

    Memories are about somebody, so the one asks about the world more often than not; the other is a slip of the keyboard. Languages
    that leave persons out as a rule are not judged by it.
    """
    text = question.replace("’", "'").strip()
    return _of_nobody(text) or _unknown(text)


def _of_nobody(text: str) -> bool:
    return text.isascii() and WORLD.match(text) is not None and not PERSONS.search(text)


def _unknown(text: str) -> bool:
    """Whether no word of a text is one. Only scripts whose words the vocabulary holds are judged."""
    letters = [character for character in text if character.isalpha()]
    if letters and all(CJK.match(character) for character in letters):
        return tokenizer.count(text) > RARE * len(text)
    if not text.isascii():
        return False
    words = LATIN_WORD.findall(text)
    return bool(words) and not any(map(_is_word, words))


def _is_word(word: str) -> bool:
    tokens = tokenizer.count(f" {word.lower()}")
    return len(word) >= SHORTEST_WORD and (tokens == 1 or len(word) >= KNOWN * tokens)
