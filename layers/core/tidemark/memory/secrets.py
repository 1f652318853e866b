"""Credentials in a text, found before anything is stored or logged.

Shapes with a fixed mark (provider keys, PEM, JWT, URLs with a password, card numbers) are taken anywhere; a free value only where the
words in front of it call it a password or a key, or the key of a property does. Plain entropy is no evidence: ids, hashes and codes are
what people want remembered. Everything that becomes memory passes `redact` or, with its properties, `redact_properties`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tidemark.text import words

REDACTED = "[redacted]"
Span = tuple[int, int]
Detector = Callable[[str], Iterable[Span]]

MARKED = re.compile(
    r"""
      -----BEGIN[ A-Z0-9]*PRIVATE\ KEY[ A-Z]*-----(?:.*?-----END[ A-Z0-9]*PRIVATE\ KEY[ A-Z]*-----|.*)   # PEM, whole or cut off
    | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?                                                              # JWT
    | (?<![A-Za-z0-9])(?:sk|rk|pk|ak)[-_][A-Za-z0-9][\w-]{14,}                                           # OpenAI, Anthropic, Stripe
    | (?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])                            # AWS
    | \b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,})
    | \b(?:AIza[\w-]{30,}|ya29\.[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|hf_[A-Za-z0-9]{20,}|dop_v1_[a-f0-9]{40,})
    | \b(?:SG\.[\w-]{16,}\.[\w-]{16,}|tm_[A-Za-z0-9_-]{20,}|whsec_\w{16,}|shp(?:at|ss|ca)_[a-f0-9]{20,})
    | \bbearer\s+[\w.~+/-]{16,}=*
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
URL_PASSWORD = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@]{0,200}:([^\s@/]{1,200})@", re.IGNORECASE)

# A word that names a credential, a few words in between, the verb or sign, the value.
CALLED = (
    r"(?:pass(?:word|[\s-]?phrase|code|wd)|(?:seed|recovery)\s+phrase|pwd|pin(?:\s+(?:code|number))?"
    r"|contraseña|clave|passwort|kennwort|mot\s+de\s+passe)"
)
OF = r"(?:\s{1,3}(?:for|of|to|on|de|für|pour|para)(?:\s{1,3}\S{1,60}){1,5}?)?"
IS = r"\s{0,3}(?:\bis(?:\s+now)?\b|\bwas\b|\bes\b|\bist\b|\best\b|=|:|->)\s{0,3}"
PASSWORD = re.compile(rf"(?<![\w-]){CALLED}{OF}{IS}[\"'`“]?([^\s\"'`“”,;]+)", re.IGNORECASE)
PHRASE_END = re.compile(r"[.,;:!?\"`“”\n]|\s(?:and|but|so|because|which|please)\s", re.IGNORECASE)
CJK_END = r"[\s\"'“”「」,，。;；]"
PASSWORD_CJK = re.compile(
    rf"(?:密码|口令|密碼|パスワード|暗証番号)\s*(?:现在)?(?:是|为|為|は|:|：|=)\s*[\"'“「]?([^\s\"'“”「」,，。;；]+?)(?=です|{CJK_END}|$)"
)
KEY_WORD = r"(?:api|access|secret|private|auth|client|account|shared|encryption)?[\s_-]{0,3}(?:key|token|secret|credentials?)"
KEY = re.compile(rf"(?<![\w-])\w{{0,20}}{KEY_WORD}{OF}{IS}[\"'`“]?([A-Za-z0-9+/_.=-]{{16,}})", re.IGNORECASE)
KEY_CJK = re.compile(r"(?:密钥|令牌|秘钥|金鑰|トークン|キー)\s*(?:是|为|は|:|：|=)\s*([A-Za-z0-9+/_.=-]{12,})")
# Nothing marks an AWS secret itself: forty characters of mixed kind, where AWS, a secret or an access key id is spoken of.
AWS_SECRET = re.compile(r"(?:(?<![A-Za-z0-9/+])|(?<=A[KS]IA[A-Z0-9]{16}/))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
AWS_NEAR = re.compile(r"(?<![A-Za-z])(?:(?:aws|amazon|secrets?|credentials?)(?![A-Za-z])|A[KS]IA[A-Z0-9]{16})", re.IGNORECASE)
AWS_DISTANCE = 100
CARD = re.compile(r"(?<![\w+.-])[3-6]\d{3}(?:[ -]?\d){9,15}(?![\w-])")

# What people say of a password without telling it.
NO_VALUE = words(
    "a an the in on at to too not no wrong incorrect expired required weak strong changed reset same kept saved stored hidden missing empty"
    " invalid being very now never always secure safe optional needed correct right unknown lost forgotten shared written what something"
    " that this my your our his her their it still already different"
)
# Of these, the ones that also begin a phrase of several words.
OPENING = words("correct right wrong strong weak secure safe hidden missing empty different secret unknown")
PROSE = (NO_VALUE - OPENING) | words(
    "of from by with for as since when if until than then or we i you he she they has have had been be are was is were can could must"
    " should would will may today yesterday tomorrow last next here there only also just quite more less enough between after before about"
)
PHRASE_WORDS, PHRASE_LENGTH = range(3, 25), 300

# The key of a property that names a credential: its last words, apart from "value" and numbers.
KEY_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
NAMED = re.compile(
    r"""
    (?:^|\s)(?:pass(?:\s?word|\s?phrase|\s?code|wd)|pwd|pin(?:\s(?:code|number))?|(?:seed|recovery)\sphrase|mnemonic|otp|cvv|cvc
      |secrets?|credentials?|authorization|contraseña|clave|passwort|kennwort|mot\sde\spasse|密码|口令|密碼|密钥|令牌|パスワード|暗証番号
      |(?<!max\s)(?<!min\s)(?<!total\s)(?<!input\s)(?<!output\s)(?<!prompt\s)(?<!completion\s)tokens?
      |(?:api|access|secret|private|auth|client|account|shared|encryption|deploy|ssh|signing|license)\s?keys?)s?(?:\svalue)?$
    | ^pass$ | (?:^|\s)apikeys?$
    """,
    re.VERBOSE,
)
COUNTED = re.compile(r"(?:tokens?|secrets?|keys?|credentials?)$")  # a number under these is how many there are


def _marked(text: str) -> Iterable[Span]:
    return [found.span() for found in MARKED.finditer(text)]


def _url_password(text: str) -> Iterable[Span]:
    return [found.span(1) for found in URL_PASSWORD.finditer(text)]


def _password(text: str) -> Iterable[Span]:
    for pattern in (PASSWORD, PASSWORD_CJK):
        for match in pattern.finditer(text):
            if phrase := _phrase(text, match.start(1)):
                yield phrase
            elif match[1].strip(".!?").casefold() not in NO_VALUE | {REDACTED} and any(c.isalnum() for c in match[1]):
                yield match.span(1)


def _phrase(text: str, start: int) -> Span | None:
    """The several plain words from `start` to the end of the clause, unless they read as prose about a password."""
    end = PHRASE_END.search(text, start, start + PHRASE_LENGTH)
    value = text[start : end.start() if end else start + PHRASE_LENGTH].rstrip().rstrip("'")
    said = value.casefold().split()
    plain = all(word.replace("-", "").replace("'", "").isalpha() for word in said)
    return (start, start + len(value)) if len(said) in PHRASE_WORDS and plain and not PROSE.intersection(said) else None


def _aws_secret(text: str) -> Iterable[Span]:
    for found in AWS_SECRET.finditer(text):
        around = f"{text[max(0, found.start() - AWS_DISTANCE) : found.start()]} {text[found.end() : found.end() + AWS_DISTANCE]}"
        kinds = (str.isupper, str.islower, str.isdigit)
        if all(any(map(kind, found[0])) for kind in kinds) and AWS_NEAR.search(around):
            yield found.span()


def _key(text: str) -> Iterable[Span]:
    """A long value of letters and digits that the text calls a key or token."""
    found = [match for pattern in (KEY, KEY_CJK) for match in pattern.finditer(text)]
    return [match.span(1) for match in found if any(c.isdigit() for c in match[1]) and any(c.isalpha() for c in match[1])]


def _card(text: str) -> Iterable[Span]:
    return [found.span() for found in CARD.finditer(text) if _luhn(found[0])]


def _luhn(number: str) -> bool:
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [d if place % 2 == 0 else sum(divmod(2 * d, 10)) for place, d in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0


DETECTORS: tuple[Detector, ...] = (_marked, _url_password, _password, _key, _aws_secret, _card)


def redact(text: str, detectors: Sequence[Detector] = DETECTORS) -> tuple[str, bool]:
    """The text without its credentials, and whether there were any. A detector that fails hides the whole text."""
    try:
        spans = sorted({span for detect in detectors for span in detect(text)})
    except Exception:  # noqa: BLE001 - fail closed, whatever the reason
        return REDACTED, True
    return _without(text, spans), bool(spans)


def redact_description(name: str, description: str) -> tuple[str, bool]:
    """The description without its credentials; one word under a name that calls it a password is one."""
    if len(description.split()) == 1 and _names_credential(name) and not _counts(name):
        return REDACTED, True
    return redact(description)


def has_secret(text: str) -> bool:
    return redact(text)[1]


def redact_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties without their credentials at any depth: by what a text says, and by what the key of a value calls it."""
    return {redact(key)[0]: _redact_value(value, _names_credential(key), counted=_counts(key)) for key, value in properties.items()}


def _redact_value(value: Any, named: bool, *, counted: bool = False) -> Any:
    if isinstance(value, dict):
        inner = redact_properties(value)
        return {key: _redact_value(one, named) for key, one in inner.items()} if named else inner
    if isinstance(value, list):
        return [_redact_value(one, named, counted=counted) for one in value]
    if isinstance(value, str):
        return REDACTED if named and value.strip() else redact(value)[0]
    return REDACTED if named and not counted and isinstance(value, int | float) and not isinstance(value, bool) else value


def _key_words(key: str) -> str:
    return " ".join(KEY_PART.findall(key)).casefold()


def _names_credential(key: str) -> bool:
    return NAMED.search(_key_words(key)) is not None


def _counts(key: str) -> bool:
    return COUNTED.search(_key_words(key)) is not None


def _without(text: str, spans: Sequence[Span]) -> str:
    kept, end = "", 0
    for start, stop in spans:
        if start >= end:
            kept += text[end:start] + REDACTED
        end = max(end, stop)
    return kept + text[end:]
