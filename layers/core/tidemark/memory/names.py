"""When two names are one: compatibility form, case, width and spaces fold; emoji too, unless nothing else remains. Typos never merge."""

import re
import unicodedata

# Pictographs, dingbats, flags, keycaps, skin tones, tags, joiners and variation selectors.
EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u231a-\u231b\u23e9-\u23fa\u25fb-\u25fe\u2b1b-\u2b1c\u2b50\u2b55\u20e3\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]"
)
# Characters without a form of their own; joiners matter only inside an emoji.
INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
SELECTOR = re.compile("[\ufe0e\ufe0f]")


def fold(name: str) -> str:
    """The key under which a name is found again; folding a key changes nothing."""
    text = INVISIBLE.sub("", _case(name))
    plain = _spaces(EMOJI.sub(" ", text))
    return _case(plain or _spaces(SELECTOR.sub("", text)))


def _case(text: str) -> str:
    """Canonical caseless form: case folding may undo the composition, so it is composed once more."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _spaces(text: str) -> str:
    return " ".join(text.split())
