"""English clauses: contractions and markers undone, clauses apart, the verb of the third person."""

import re

from tidemark.text import words

CONTRACTIONS = (
    # As people type them in haste.
    (re.compile(r"\b(i)m\b", re.I), r"\1 am"),
    (re.compile(r"\b(i)ve\b", re.I), r"\1 have"),
    (re.compile(r"\b(do|does|did|is|are|was|were|wo|ca|has|have)nt\b", re.I), r"\1n't"),
    (re.compile(r"\b([Nn]ame)'s (?=[A-Z])"), r"\1 is "),
    (re.compile(r"\b(ca)n't\b", re.I), r"cannot"),
    (re.compile(r"\b(wo)n't\b", re.I), r"will not"),
    (re.compile(r"n't\b", re.I), " not"),
    (re.compile(r"\b(I)'m\b", re.I), r"\1 am"),
    (re.compile(r"\b(\w+)'ve\b", re.I), r"\1 have"),
    (re.compile(r"\b(\w+)'ll\b", re.I), r"\1 will"),
    (re.compile(r"\b(\w+)'re\b", re.I), r"\1 are"),
    (re.compile(r"\b(I|we|you|he|she|they)'d (?=(?:\w+ )?(?:like|love|prefer|rather)\b)", re.I), r"\1 would "),
    (re.compile(r"\b(I|we|you|he|she|they)'d\b", re.I), r"\1 had"),
    (re.compile(r"\b(he|she|it|that|there|who)'s (?=(?:been|got|had|moved|become|gone|started|left|just)\b)", re.I), r"\1 has "),
    (
        re.compile(
            r"\b(he|she|it|that|there|who|name|[a-z]{3,})'s (?=(?:a|an|the|in|on|at|not|my|from|now|called|named|allergic"
            r"|\w+ing)\b)"
        ),
        r"\1 is ",
    ),
    (re.compile(r"\b(he|she)'s\b", re.I), r"\1 is"),
)
MARKER = re.compile(
    r"^(?:(?-i:[A-Z])\w{2,12}(?: \w{2,12})?:\s+(?=(?:i|my|we|our)\b)|(?:actually|well|oh|ah|hmm|um|so|and|but|also|btw|by the way"
    r"|fyi|hi|hello"
    r"|hey(?: there)?|yes|yeah|no|nope|ok(?:ay)?"
    r"|right|anyway|plus|then|look|listen"
    r"|honestly|personally|basically|in fact|to be honest|tbh|for the record|just so you know|just to let you know|for your"
    r" information|you know|as you know|correction|update"
    r"|edit|p\.?s|note|remember|keep in mind|fun fact|sorry|thanks?|great|good news|one more thing|another thing|in addition"
    r"|besides|however|though|still|these days|nowadays"
    r"|right now|currently|at the moment|luckily|unfortunately|sadly|finally|recently|lately|of course|obviously|as of (?:today"
    r"|now)|from now on)(?: that)?\s*[,:!.–—-]+\s*"
    r"|(?:and|but|so|also|then|plus|because|since(?=\s+(?:i|we|my|our|he|she|they)\b)|btw|fyi|ps|however|actually|currently|nowadays|recently|honestly|personally|well"
    r"|oh|yes|hi|hello)\s+"
    r"|(?:i (?:think|guess|believe|suppose|should (?:add|mention|say)|must (?:say|admit)|have to (?:say|admit)|just wanted to"
    r" (?:say|mention)|want(?:ed)? to (?:mention|add|say))(?: that)?|it is true that|the (?:fact|truth|thing) is(?: that)?|note"
    r" that|(?:please )?remember that|know that)\s+)+",
    re.IGNORECASE,
)
TRAIL = re.compile(
    r"(?:[,\s]+(?:too|as well|by the way|btw|though|lol|haha|you know|right|actually|honestly|please|thanks?|thank"
    r" you))*[\s.!;,:…]*$",
    re.IGNORECASE,
)
# A time in front of the subject goes behind the verb, so that a clause begins with its subject.
WHEN = re.compile(
    r"^((?:since )?(?:yesterday|today|tomorrow|tonight|(?:last|this|next) (?:\w+)(?: \w+)??|(?:a|two|three|four|five|six|\w+|\d+) (?:days"
    r"|weeks?|months?|years?) ago|(?:in|on|since|by|during) (?:early |late |mid )?(?:the )?"
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|Thursday"
    r"|Friday|Saturday|Sunday|spring|summer|autumn|fall|winter|\d{1,2}(?:st|nd|rd|th)?)[\w ]*?(?: \d{4})?"
    r"|(?:in|since) (?:19|20)\d\d)),?\s+((?:i|we|my|our|the|he|she|they|(?-i:[A-Z])\w+)\b.+?)[\s.!]*$",
    re.IGNORECASE,
)
VERBS = (
    "live|reside|work|like|love|enjoy|adore|hate|dislike|detest|prefer|speak|use|play|study|have|own|am|want|plan|hope|moved"
    "|joined|quit|left|know|keep|drive|ride|teach|run|write|cook"
    "|need|cannot|can|do not|did not|went|bought|got|started|met|grew|was|were|visited|finished|adopted|married|take|drink|eat"
    "|read|is|are|has|lives|works|likes|loves|speaks|uses|plays|studies|owns"
    "|hates|dislikes|enjoys|prefers|wants|knows|drives|runs|teaches|keeps"
)
SPLIT = re.compile(
    rf"\s*;\s*|\s+[-–—]+\s+|,?\s+(?:and|but|so|while|whereas|yet|and then)\s+(?:now\s+|also\s+|then\s+)?(?=(?:i|we|my|our|he|she|they)\b)"
    rf"|,\s+(?=(?:i|we|my|our|he"
    rf"|she)\s+\w+)|,?\s+(?:and|but)\s+(?:also\s+|now\s+)?(?=(?:{VERBS})\s)",
    re.IGNORECASE,
)
# A clause that only tells when.
SUBORDINATE = re.compile(r"\s*(?:when|whenever|while|although|though|as|after|before|once|until|where|by the time)\b", re.IGNORECASE)
ADVERB = re.compile(
    r"\b(?:really|absolutely|also|just|still|currently|always|usually|mostly|actually|recently|finally|definitely|honestly"
    r"|certainly|simply|truly|particularly|especially|probably|now|quite|totally|already"
    r"|very much|originally|primarily|mainly|generally|often|sometimes|both|only|even|deeply|kind of|sort of|presently|normally"
    r"|typically)\s+",
    re.IGNORECASE,
)
NEGATION = re.compile(
    r"^(?:(?:do|does|did|am|is|are|was|were|will|can|have|has|had)\s+(?:not|never)\s+(?:\w+ly\s+)?|cannot\s+"
    r"|never\s+|no longer\s+|not\s+)",
    re.IGNORECASE,
)
NO_MORE = re.compile(r"\b(?:no longer|any ?more|any longer|not .* now)\b", re.IGNORECASE)

PAST = words(
    "went bought got had did saw met took gave came found thought told knew left felt brought began kept held wrote stood heard"
    " let meant set"
    " ran paid sat spoke lay led read grew lost fell sent built broke spent cut drove broke chose ate drank flew rode sang swam"
    " taught caught"
    " won wore woke threw forgot hurt hit put quit cost shut sold made was were became said began slept understood fought hid"
)
IRREGULAR = {"am": "is", "are": "is", "have": "has", "do": "does", "go": "goes", "was": "was", "were": "was", "cannot": "cannot"}
MODAL = words("will can could would should shall may might must cannot has is does was used")
PERSONS = (
    (re.compile(r"\bmy\b", re.I), "their"),
    (re.compile(r"\bmyself\b", re.I), "themselves"),
    (re.compile(r"\b(?<!-)I\b"), "they"),
    (re.compile(r"\bme\b"), "them"),
    (re.compile(r"\bmine\b", re.I), "theirs"),
)


def plain(sentence: str) -> str:
    """A sentence with its contractions written out, without markers in front and politeness behind."""
    text = re.sub(r"[’‘]", "'", " ".join(sentence.split()))
    for pattern, full in CONTRACTIONS:
        text = pattern.sub(full, text)
    text = WHEN.sub(r"\2 \1", MARKER.sub("", text))
    text = TRAIL.sub("", text.strip(' "“”*_#-•'))
    return text.strip()


def clauses(text: str) -> list[str]:
    """The clauses of a sentence; one without a subject of its own takes that of the clause before."""
    parts = [part.strip(" ,") for part in SPLIT.split(text) if part.strip(" ,") and not SUBORDINATE.match(part)]
    made: list[str] = []
    for part in _joined(parts):
        head = re.match(r"^(?:I|we|he|she|they|[A-Z]\w+|(?:[Mm]y|[Oo]ur) \w+(?: [A-Z]\w+)?)\b", made[-1]) if made else None
        own = re.match(r"(?:i|we|my|our|he|she|they|the|his|her|their)\b", part, re.IGNORECASE)
        made.append(part if own or head is None else f"{head[0]} {part}")
    return made


PARALLEL = re.compile(r"^(?:I|we) (?:\w+ly |also |now )?(?P<verb>\w+)\b", re.IGNORECASE)
OWN_SUBJECT = re.compile(r"(?:i|we|my|our|he|she|they|the|his|her|their)\b", re.IGNORECASE)


def _joined(parts: list[str]) -> list[str]:
    """ "energy and love" is no second predicate: a part without a subject stands alone only beside a verb of the same tense."""
    made: list[str] = []
    for part in parts:
        before = PARALLEL.match(made[-1]) if made else None
        past = bool(before) and before is not None and _is_past(before["verb"])
        if made and not OWN_SUBJECT.match(part) and before and past != _is_past(part.split()[0]):
            made[-1] = f"{made[-1]} and {part}"
        else:
            made.append(part)
    return made


def _is_past(verb: str) -> bool:
    low = verb.casefold()
    return low in PAST or (low.endswith("ed") and low != "need")


def third(verb_phrase: str) -> str:
    """ "live in Oslo" as one says it of somebody: "lives in Oslo"; past and modal verbs stay."""
    verb, space, rest = verb_phrase.partition(" ")
    for pattern, other in PERSONS:
        rest = pattern.sub(other, rest)
    return f"{_third_verb(verb)}{space}{rest}"


def _third_verb(verb: str) -> str:
    low = verb.casefold()
    if low in IRREGULAR:
        return IRREGULAR[low]
    if low in MODAL or low in PAST or (low.endswith("ed") and low != "need") or low.endswith("ly") or not low.isalpha():
        return verb
    if re.search(r"(?:s|sh|ch|x|z|o)$", low):
        return verb if low.endswith("s") and not low.endswith("ss") else verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", low) else verb + "s"
