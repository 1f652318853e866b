"""Plain facts about a text that several parts need: its script, its sentences, the words that carry it."""

import re
from collections.abc import Iterator
from functools import lru_cache

HAN, KANA, HANGUL = r"\u3400-\u9fff\uf900-\ufaff", r"\u3040-\u30ff\u31f0-\u31ff", r"\uac00-\ud7af"
CJK = re.compile(f"[{HAN}{KANA}{HANGUL}]")
# A sentence ends at a CJK stop, at a line's end, or at a stop, a question or an exclamation mark in front of white space.
STOP = re.compile(r"[。！？；!?]+[”’」』\"')\]）】]*|\n+|(?<=[^.\s])\.+[\"')\]”’]*(?=\s|$)|(?<=[\u3400-\u9fff])[.;](?=\S)|;(?=\s)")
# A stop behind these ends no sentence.
ABBREVIATION = re.compile(r"(?:^|[\s(])(?:Mrs?|Ms|Dr|Prof|St|Jr|Sr|vs|e\.g|i\.e|approx|No|Nr|Mt|Ave|Rd|Inc|Ltd|Co|a\.m|p\.m|[A-Z])\.$")


def words(text: str) -> frozenset[str]:
    """A set of words from their list in one string."""
    return frozenset(text.split())


STOP_WORDS = words(
    "a an the this that these those i me my mine we us our you your he him his she her it its they them their is am are was were"
    " be been being"
    " do does did done have has had will would can could shall should may might must and or but if so as of to in on at by for"
    " from with about"
    " into than then there here what which who whom whose when where why how not no yes please tell know say said remember recall"
    " again more"
    " also just very much many some any all user user's s t m re ve ll d what's who's where's called name"
)
ZH_STOP = re.compile(
    "什么|名字|多大|哪里|哪儿|哪个|哪|谁|怎么|怎样|多少|几|吗|呢|吧|的|了|是|在|我|你|他|她|它|们|请|告诉|记得|知道|还|有没有|有|个|这|那|叫|最"
)
WORD = re.compile(rf"[^\W_]+(?:['’.+#@/_-]+[^\W_]+)*[+#]*|[{HAN}{KANA}{HANGUL}]")
QUESTION_START = re.compile(
    r"^(?:and |so |but |also |then |ok(?:ay)?,? |hey,? |hi,? )*(?:(?:what|where|who|whom|whose|when|why|how|which)(?:'s|'re"
    r"|'d)?\b(?!\s+(?:a|an)\b)"
    r"|(?:do|does|did|is|are|am|was|were|can|could|would|will|should|shall|may|have|has|had|isn't|aren't|don't|doesn't|didn't"
    r"|won't|can't)\s+"
    r"(?:i|you|we|he|she|they|it|my|your|our|his|her|their|the|this|that|these|those|there|any|some|a|an|[A-Z]\w+)\b)",
    re.IGNORECASE,
)
ZH_QUESTION = re.compile(
    r"(?:吗|呢|么)[?？。!！]*$|什么|哪里|哪儿|哪个|谁(?:是|在|的)|怎么|怎样|为什么|多少|几[个点岁月号]|是不是|有没有|能不能|会不会|要不要|可不可以"
)


def language(text: str) -> str:
    """ "ja", "ko", "zh" by script, else "en": the language in which an answer to the text is framed."""
    letters = sum(1 for character in text if character.isalpha())
    if re.search(f"[{KANA}]", text):
        return "ja"
    if re.search(f"[{HANGUL}]", text):
        return "ko"
    han = len(re.findall(f"[{HAN}]", text))
    first = next((character for character in text if character.isalpha()), "")
    return "zh" if han and (han * 4 >= letters or CJK.match(first)) else "en"


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text stands, without the white space around it."""
    start = 0
    for stop in STOP.finditer(text):
        if stop[0].startswith(".") and ABBREVIATION.search(text, max(start, stop.end() - 12), stop.end()):
            continue
        yield from _trimmed(text, start, stop.end())
        start = stop.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        begin = start + piece.index(stripped[0])
        yield begin, begin + len(stripped)


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, in English or Chinese, with or without its mark."""
    ends = sentence.rstrip("\"'”’」』) ").endswith(("?", "？"))
    return ends or bool(QUESTION_START.match(sentence)) or bool(CJK.search(sentence) and ZH_QUESTION.search(sentence))


def terms(text: str) -> list[str]:
    """The words that carry a text: no stop words; runs of CJK characters as their bigrams, a lone character as itself."""
    found = [word.casefold() for word in WORD.findall(text) if not CJK.search(word)]
    kept = [word for word in found if word not in STOP_WORDS]
    return list(dict.fromkeys([*kept, *_bigrams(text)]))


def _bigrams(text: str) -> list[str]:
    runs = re.findall(f"[{HAN}{KANA}{HANGUL}]+", ZH_STOP.sub(" ", text))
    return [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]


# A letter or digit of a script that puts spaces between words.
LETTER = rf"[^\W_{HAN}{KANA}{HANGUL}]"
SUFFIX = re.compile(r"(?:ies|ing|ied|ed|es|s|e|y)$")
SAME = {"favorite": "favourite", "color": "colour", "job": "work", "home": "live", "reside": "live", "employer": "work"}


@lru_cache(maxsize=512)
def term_pattern(term: str) -> str:
    """A pattern that finds a term in its other forms too: plural, past, -ing, British or American."""
    if CJK.search(term):
        return re.escape(term)
    term = SAME.get(term, term).removesuffix("'s")
    stem = SUFFIX.sub("", term) if len(term) > 3 and term.isalpha() else term
    stem = stem if len(stem) > 2 else term
    body = re.escape(stem).replace("our", "ou?r")
    ending = r"(?:y|ies|ied|ying|e|s|es|d|ed|ing|er|ers|'s)?" if term.isalpha() else ""
    return rf"(?<!{LETTER}){body}{ending}(?!{LETTER})"
