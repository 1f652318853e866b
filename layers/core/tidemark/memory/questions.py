"""What a question says about itself before anything is searched."""

import re
from collections.abc import Iterable
from typing import Literal

from tidemark.memory.rules.kinds import SMALL_TALK
from tidemark.models import tokenizer
from tidemark.text import CJK, is_question, sentences, terms

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


# Words that go on from what was said.
GOES_ON = re.compile(
    r"(?:and|or|but|so|then|also|what about|how about|what else|who else|anything else|why|tell me more|more about|go on|the (?:same|other|"
    r"first|second|third|last|next) one)\b|(?:那么?(?![个些里边])|还有|然后|为什么|为啥|继续|除此之外|另外呢)|.{1,12}呢[?？]?$",
    re.IGNORECASE,
)
REFERS = re.compile(
    r"(?<!\w)(?:he|him|his|she|her|hers|it|its|they|them|their|theirs|that|this|those|these|there|ones?)(?!\w)|[他她它](?:们)?|[那这](?:[些里边时儿]|个(?=[是的在有吗呢怎？?]|$))",
    re.IGNORECASE,
)
# Of whom or what, where the text says so itself in front of that; "it" of the weather and the hour stands for nothing.
NAMES = re.compile(
    r"(?<!\w)(?i:my|our|your) \w|(?<=\S )(?!I\b)[A-Z]\w|(?i:(?:what time|is|was|will|does) it (?:is|rain|snow|be|now|possible|safe|true|ok"
    r"|legal|worth|take|necessary|cost|mean|hot|cold|late)|what (?:time|day|date|year) is it)|[我你](?:的|妈|爸|妹|姐|哥|弟|老|朋|同|公|家)"
)
ANSWERS = re.compile(
    r"\W*(?:yes|yeah|yep|sure|ok(?:ay)?|please(?: do)?|go ahead|do (?:it|that|so)|no|nope|好的?|是的?|对|可以|行|请|不用?)"
    r"(?:[\s,，]*(?:please(?: do)?|go ahead|thanks?|thank you|do (?:it|that)|谢谢))?\W*",
    re.IGNORECASE,
)
FEW_TERMS = 5
RECENT_TURNS, RECENT_CHARACTERS = 3, 300
Said = tuple[Literal["user", "assistant"], str]


def said(role: str, content: str) -> Said:
    return ("assistant" if role == "assistant" else "user"), content


def leans(text: str) -> bool:
    """Whether a turn's words tell what is meant only together with the turns before: "What does she do there?", "And in winter?" """
    text = text.replace("’", "'").strip()
    if not any(character.isalpha() for character in text) or _unknown(text) or _small_talk(text):
        return False
    carrying = terms(text)
    if not carrying or (GOES_ON.match(text) and len(carrying) <= FEW_TERMS):
        return True
    refers = REFERS.search(text)
    return refers is not None and len(carrying) <= FEW_TERMS and not NAMES.search(text, 0, max(refers.end() + 12, 24))


def _small_talk(text: str) -> bool:
    return not is_question(text) and SMALL_TALK.search(text.rstrip(" .!。！")) is not None


def with_recent(text: str, recent: Iterable[Said]) -> str:
    """What to look for: the turn's words, and in front of them those that they lean on. `recent` is what was said before, newest first.

    A turn that stands by itself is looked for by itself, so that what was talked about is not brought up again by every turn.
    """
    earlier = iter(recent)
    before: list[str] = []
    if ANSWERS.fullmatch(text.strip()):
        role, asked = next(earlier, ("user", ""))
        last = sentences(asked)[-1:]
        if role == "user" or not last or not last[0].rstrip("\"'”’」 )").endswith(("?", "？")):
            return text
        before = last
    elif not leans(text):
        return text
    for role, words in earlier:
        if role == "user":
            before.insert(0, words)
            if len(before) == RECENT_TURNS or not leans(words):
                break
    return "\n".join([*(words[-RECENT_CHARACTERS:] for words in before), text])
