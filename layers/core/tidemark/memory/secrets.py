"""Credentials in a text, found before anything is stored or logged.

Shapes with a fixed mark (provider keys, PEM, JWT, URLs with a password, card numbers) are taken anywhere; a free value only where the
words in front of it call it a password or a key. Plain entropy is no evidence: ids, hashes and codes are what people want remembered.
"""

import re
from collections.abc import Callable, Iterable, Sequence

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
CALLED = r"(?:pass(?:word|phrase|code|wd)|pwd|pin(?:\s+(?:code|number))?|contraseña|clave|passwort|kennwort|mot\s+de\s+passe)"
OF = r"(?:\s{1,3}(?:for|of|to|on|de|für|pour|para)(?:\s{1,3}\S{1,60}){1,5}?)?"
IS = r"\s{0,3}(?:\bis(?:\s+now)?\b|\bwas\b|\bes\b|\bist\b|\best\b|=|:|->)\s{0,3}"
PASSWORD = re.compile(rf"(?<![\w-]){CALLED}{OF}{IS}[\"'`“]?([^\s\"'`“”,;]+)", re.IGNORECASE)
CJK_END = r"[\s\"'“”「」,，。;；]"
PASSWORD_CJK = re.compile(
    rf"(?:密码|口令|密碼|パスワード|暗証番号)\s*(?:现在)?(?:是|为|為|は|:|：|=)\s*[\"'“「]?([^\s\"'“”「」,，。;；]+?)(?=です|{CJK_END}|$)"
)
KEY_WORD = r"(?:api|access|secret|private|auth|client|account|shared|encryption)?[\s_-]{0,3}(?:key|token|secret|credentials?)"
KEY = re.compile(rf"(?<![\w-])\w{{0,20}}{KEY_WORD}{OF}{IS}[\"'`“]?([A-Za-z0-9+/_.=-]{{16,}})", re.IGNORECASE)
KEY_CJK = re.compile(r"(?:密钥|令牌|秘钥|金鑰|トークン|キー)\s*(?:是|为|は|:|：|=)\s*([A-Za-z0-9+/_.=-]{12,})")
CARD = re.compile(r"(?<![\w+.-])[3-6]\d{3}(?:[ -]?\d){9,15}(?![\w-])")

# What people say of a password without telling it.
NO_VALUE = words(
    "a an the in on at to too not no wrong incorrect expired required weak strong changed reset same kept saved stored hidden missing empty"
    " invalid being very now never always secure safe optional needed correct right unknown lost forgotten shared written what something"
    " that this my your our his her their it still already different"
)


def _marked(text: str) -> Iterable[Span]:
    return [found.span() for found in MARKED.finditer(text)]


def _url_password(text: str) -> Iterable[Span]:
    return [found.span(1) for found in URL_PASSWORD.finditer(text)]


def _password(text: str) -> Iterable[Span]:
    found = [match for pattern in (PASSWORD, PASSWORD_CJK) for match in pattern.finditer(text)]
    return [match.span(1) for match in found if match[1].strip(".!?").casefold() not in NO_VALUE and any(c.isalnum() for c in match[1])]


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


DETECTORS: tuple[Detector, ...] = (_marked, _url_password, _password, _key, _card)


def redact(text: str, detectors: Sequence[Detector] = DETECTORS) -> tuple[str, bool]:
    """The text without its credentials, and whether there were any. A detector that fails hides the whole text."""
    try:
        spans = sorted({span for detect in detectors for span in detect(text)})
    except Exception:  # noqa: BLE001 - fail closed, whatever the reason
        return REDACTED, True
    return _without(text, spans), bool(spans)


def has_secret(text: str) -> bool:
    return redact(text)[1]


def _without(text: str, spans: Sequence[Span]) -> str:
    kept, end = "", 0
    for start, stop in spans:
        if start >= end:
            kept += text[end:start] + REDACTED
        end = max(end, stop)
    return kept + text[end:]
