"""Requests to remember something: found in six languages, confirmed in the caller's, and turned into statements.

Only an imperative counts. Asking whether something is remembered, telling that one remembers, or asking not to remember stores nothing.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tidemark.memory.model import SourceMessage, Statement
from tidemark.memory.names import fold
from tidemark.memory.rules.extract import LONGEST_SENTENCE, of_sentence
from tidemark.memory.rules.kinds import kind
from tidemark.memory.rules.people import People
from tidemark.memory.rules.source import own_words
from tidemark.memory.secrets import REDACTED, redact
from tidemark.text import is_question, language, spans, terms

Language = Literal["en", "zh", "ja", "es", "de", "fr"]
SecretPolicy = Literal["refuse", "redact"]


@dataclass(frozen=True, slots=True)
class ExplicitRequest:
    """What somebody asks to be remembered, in their words, and the language in which they asked."""

    content: str
    language: Language


@dataclass(frozen=True, slots=True)
class Form:
    """One way to ask. What `refused` finds at the beginning of the content makes it no request after all."""

    language: Language
    pattern: re.Pattern[str]
    refused: re.Pattern[str] = re.compile(r"(?!)")
    polite_question: bool = False


EN_VERB = (
    r"(?:(?:make sure (?:that )?(?:you |to )?)?remember|memori[sz]e|keep in mind|bear in mind|don't forget|do not forget|never forget"
    r"|make a (?:mental )?note|take note|commit (?:this |it )?to memory)"
)
EN_LEAD = (
    r"^(?:(?:hey|hi|hello|ok(?:ay)?|also|and|so|now|oh|well|then|one more thing|by the way)[,:!]?\s+)*(?:please[,]?\s+"
    r"|kindly\s+)?(?:also\s+|always\s+|just\s+)?"
)
EN_OBJECT = (
    r"(?:\s+(?:this|the following|these(?: things| facts)?|of (?:this|the following)|one thing|something)(?:\s+(?:for me"
    r"|about me|for later|fact|please|well))*(?=\s*[:,–—-]|\s+that\b)|\s+for me|\s+please)?"
)
EN_JOIN = r"\s*(?:[:,–—-]+\s*(?:that\s+)?|\s(?:the fact )?that\s+|\s+)"
EN_POLITE = (
    r"^(?:(?:hey|hi|ok(?:ay)?|also|and|so)[,:!]?\s+)*(?:can|could|will|would) you (?:please |kindly |also )*|^(?:(?:please"
    r"|also)\s+)?i(?:'d| would)? (?:want|like|need) you to (?:please )?|^i would like you to (?:please )?"
)
EN_REFUSED = re.compile(
    r"(?:when|what|where|who|whom|whose|why|how|which|if|whether|anything|everything (?:i|we)|me\b|us\b|you\b|him\b|her\b|them\b"
    r"|not to\b|(?:the|that|this) (?:time|day|night|song|guy|girl|one|thing|place|movie|film|moment|conversation)\b(?! is\b| are\b"
    r"| was\b))",
    re.IGNORECASE,
)
ES_OBJECT = r"(?:\s+(?:esto|lo siguiente|bien|bien esto|de esto|por favor))*"
DE_OBJECT = r"(?:\s+(?:bitte|das|dies|dieses|folgendes|gut|daran|mal))*"
FR_OBJECT = r"(?:\s+(?:bien|ceci|cela|ça|de ceci|de cela|de ça|s'il te plaît|s'il vous plaît))*"
FORMS: tuple[Form, ...] = (
    Form("en", re.compile(rf"{EN_LEAD}{EN_VERB}{EN_OBJECT}{EN_JOIN}(?P<content>.+)", re.I | re.S), EN_REFUSED),
    Form(
        "en",
        re.compile(rf"(?:{EN_POLITE}){EN_VERB}{EN_OBJECT}(?:\s*[:–—-]+\s*|\s+that\s+)(?P<content>.+)", re.I | re.S),
        EN_REFUSED,
        polite_question=True,
    ),
    Form(
        "zh",
        re.compile(
            r"^(?:请|麻烦|拜托|帮我|帮忙|给我|你|您|一定|务必|要|好好|也|再|再次)*(?:记住|记下来?|记一下|记着|牢记|别忘了|不要忘记|别忘记|记得)(?:了"
            r"|下来)?(?:[这以]下?(?:一?[点件个条]事?情?|些)?(?:内容|信息)?|以下(?:内容|信息)?)?[：:，,、\s]*(?P<content>.+)",
            re.S,
        ),
        re.compile(
            r"(?:吗|没有?[?？]"
            r"|了吗|什么|谁|哪)"
        ),
    ),
    Form(
        "ja",
        re.compile(
            r"^(?:これを?|このことを?|次のことを?|以下を?|下記を?|ぜひ|必ず)*(?:覚えて|記憶して|メモして|記録して)(?:おいて)?(?:ください|下さい|くれ|ね|ほしい|欲しい|もらえますか"
            r"|くれますか)?\s*[：:、。\s]+(?P<content>.+)",
            re.S,
        ),
    ),
    Form(
        "ja",
        re.compile(
            r"^(?P<content>.{3,400}?)(?:という)?(?:こと|の)?(?:を|と|って|、)(?:ちゃんと|よく|ぜひ)?(?:覚えて|記憶して|メモして)(?:おいて)?(?:ください|下さい"
            r"|くれ|ね|ほしい)?[。.!！]*$",
            re.S,
        ),
    ),
    Form(
        "es",
        re.compile(
            rf"^(?:por favor,?\s+|oye,?\s+|y\s+|también\s+)*(?:recuerda(?:me)?|recuérdame|recuerde|recordad|acu[eé]rdate"
            rf"|memoriza|no olvides|ten en cuenta|ten presente)(?:\s+de)?{ES_OBJECT}(?:\s*[:,]\s*(?:que\s+)?|\s+que\s+"
            rf"|\s+)(?P<content>.+)",
            re.I | re.S,
        ),
        re.compile(r"(?:cuando|cuándo|qué|dónde|quién|cómo|si)\b", re.I),
    ),
    Form(
        "es",
        re.compile(
            rf"^¿?(?:por favor,?\s+)?(?:puedes|podrías|puede|podría) (?:recordar|memorizar){ES_OBJECT}(?:\s*:\s*"
            rf"|\s+que\s+)(?P<content>.+)",
            re.I | re.S,
        ),
        polite_question=True,
    ),
    Form(
        "de",
        re.compile(
            rf"^(?:bitte,?\s+|und\s+|auch\s+|hey,?\s+)*(?:merke?\s+(?:dir|es dir)|merken sie sich|merkt euch"
            rf"|behalte?|erinnere dich|vergiss nicht|vergiss bitte nicht|denk(?:e)? daran|präge?"
            rf" dir)(?:\s+ein)?{DE_OBJECT}(?:\s*[:,]\s*(?:dass\s+)?|\s+dass\s+|\s+)(?P<content>.+)",
            re.I | re.S,
        ),
        re.compile(r"(?:nicht\b|nichts\b|wann|wie|wer|was|wo)\b", re.I),
    ),
    Form(
        "de",
        re.compile(
            rf"^(?:bitte\s+)?(?:kannst|könntest|würdest) du dir(?:\s+bitte)?{DE_OBJECT} merken(?:\s*:\s*"
            rf"|,?\s+dass\s+)(?P<content>.+)",
            re.I | re.S,
        ),
        polite_question=True,
    ),
    Form(
        "fr",
        re.compile(
            rf"^(?:s'il (?:te|vous) pla[iî]t,?\s+|stp,?\s+|et\s+|aussi\s+)*(?:souviens[- ]toi|souvenez[- ]vous"
            rf"|rappelle[- ]toi|rappelez[- ]vous|retiens|retenez|m[ée]morise[zr]?|n'oublie(?:z)? pas|garde en mémoire|garde à"
            rf" l'esprit){FR_OBJECT}(?:\s*[:,]\s*(?:qu(?:e\s+|'))?|\s+qu(?:e\s+|')|\s+)(?P<content>.+)",
            re.I | re.S,
        ),
        re.compile(r"(?:quand|comment|où|qui|pourquoi|pas\b|de moi|si)\b", re.I),
    ),
    Form(
        "fr",
        re.compile(
            rf"^(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous)(?:\s+(?:s'il (?:te|vous) pla[iî]t|bien))* (?:te"
            rf" souvenir|retenir|mémoriser){FR_OBJECT}(?:\s*:\s*|\s+qu(?:e\s+|'))(?P<content>.+)",
            re.I | re.S,
        ),
        polite_question=True,
    ),
)
# The request that points back at what was just said: "My cat is called Tom. Please remember that."
BACKWARD: tuple[tuple[Language, re.Pattern[str]], ...] = (
    (
        "en",
        re.compile(
            r"^(?P<content>.+?[\w)\]'\"])(?:[.!;,–—-]+|\s+-)\s*(?:so\s+|and\s+)?(?:please\s+)?(?:remember|don't forget"
            r"|keep in mind|memori[sz]e)\s+(?:that|this|it|these|them)(?: please| for me| for later)?[.!]*$",
            re.I | re.S,
        ),
    ),
    (
        "zh",
        re.compile(
            r"^(?P<content>.+?)[，。,.!！；;\s]+(?:请|麻烦|帮我|你|要|一定)*(?:记住|记下来?|记一下|别忘了|不要忘记)(?:这一?[点件个]事?情?|了|哦|啊|它)*[。.!！]*$",
            re.S,
        ),
    ),
    (
        "ja",
        re.compile(
            r"^(?P<content>.+?)[。．!！、]+(?:これを?|このことを?)?(?:覚えて|記憶して)(?:おいて)?(?:ください|下さい|くれ|ね|ほしい)?[。.!！]*$",
            re.S,
        ),
    ),
    (
        "es",
        re.compile(
            r"^(?P<content>.+?)[.!;,]+\s*(?:por favor,?\s+)?(?:recu[eé]rdalo|recuerda (?:esto|eso)|no lo"
            r" olvides)[.!]*$",
            re.I | re.S,
        ),
    ),
    ("de", re.compile(r"^(?P<content>.+?)[.!;,]+\s*(?:bitte\s+)?(?:merk(?:e)? dir das|vergiss das nicht)(?: bitte)?[.!]*$", re.I | re.S)),
    (
        "fr",
        re.compile(r"^(?P<content>.+?)[.!;,]+\s*(?:souviens-t'en|retiens-le|retiens (?:ceci|cela|ça)|ne l'oublie pas)[.!]*$", re.I | re.S),
    ),
)
NEGATED = re.compile(r"(?:don't|do not|never|needn't|stop|不要|别|不用|不必|无需)\s*$|\bno\s*$", re.IGNORECASE)
POINTER = re.compile(
    r"^(?:this|that|it|these|those|them|something|everything|all|please|这|那|这个|那个|这些|它|一下|一点|了|これ|それ|esto|eso|das"
    r"|dies|ceci|cela|ça)[\s.!?。！？:：]*$",
    re.IGNORECASE,
)
CONFIRMATIONS: dict[Language, str] = {
    "en": "I will remember this: {}",
    "zh": "我会记住：{}",
    "ja": "覚えておきます：{}",
    "es": "Lo recordaré: {}",
    "de": "Ich merke mir: {}",
    "fr": "Je m'en souviendrai : {}",
}
# A confirmation names what was stored without repeating a whole page.
CONFIRMED_LENGTH = 300
# A request stands at the beginning or the end of what somebody writes by hand.
LONGEST = 12_000
BACKWARD_LENGTH = 1_000


def parse(text: str) -> ExplicitRequest | None:
    """The request in a message, if it is one."""
    own = own_words(text[:LONGEST])
    for start, end in spans(own):
        request = _forward(own[start:], own[start:end])
        if request:
            return request
    return _backward(own.strip()) if len(own) <= BACKWARD_LENGTH else None


def _forward(rest: str, sentence: str) -> ExplicitRequest | None:
    """A request that begins here; its content goes on to the end of the message."""
    text = re.sub(r"[’‘]", "'", rest)
    for form in FORMS:
        found = form.pattern.match(text)
        if not found or form.refused.match(found["content"]):
            continue
        content = rest[found.start("content") : found.end("content")].strip()
        if form.polite_question and sentence.rstrip().endswith(("?", "？")):
            content = re.sub(r"\s*[?？]", "", content, count=1)
        return ExplicitRequest(content, form.language) if _is_content(content, form.language) else None
    return None


def _is_content(content: str, spoken: Language) -> bool:
    """Something to keep: not empty, not only a pointer, and not a question."""
    first = next((content[start:end] for start, end in spans(content)), "")
    asks = first.rstrip("\"'”’ ").endswith(("?", "？")) or (spoken in ("en", "zh") and is_question(first))
    return has_content(content) and not asks and not POINTER.match(content)


def _backward(text: str) -> ExplicitRequest | None:
    for spoken, pattern in BACKWARD:
        found = pattern.match(text)
        if not found or not _is_content(found["content"], spoken) or NEGATED.search(text[: found.end("content") + 1]):
            continue
        last = [found["content"][start:end] for start, end in spans(found["content"])][-1]
        if not is_question(last):
            return ExplicitRequest(found["content"].strip(), spoken)
    return None


def has_content(text: str) -> bool:
    """Whether there is anything to remember: a letter, a digit or a symbol such as an emoji, not only punctuation."""
    return any(character.isalnum() or unicodedata.category(character).startswith("S") for character in text)


def confirmation(request: ExplicitRequest, spoken: Language | None = None) -> str:
    """What the caller is told, in their language, with what was stored and without any credential."""
    content = redact(" ".join(request.content.split()))[0]
    short = content if len(content) <= CONFIRMED_LENGTH else content[:CONFIRMED_LENGTH].rstrip() + "…"
    return CONFIRMATIONS[spoken or request.language].format(short)


def request_of(text: str) -> ExplicitRequest | None:
    """A text that is to be remembered as it stands, or the content of the request in it; None without content."""
    found = parse(text)
    if found or not has_content(text):
        return found
    spoken = language(text)
    return ExplicitRequest(text.strip(), "zh" if spoken == "zh" else "ja" if spoken == "ja" else "en")


def statements(
    request: ExplicitRequest, message: SourceMessage, known: Mapping[str, str] | None = None, secrets: SecretPolicy = "refuse"
) -> list[Statement]:
    """The statements of a request: structured where the rules read them, else word for word; at least one unless it was secret.

    `message` is the one that holds the request, so that each quote is a part of it.
    """
    people = People.known(known or {})
    made: list[Statement] = []
    for sentence in _asserted(request):
        safe, secret = redact(sentence)
        if secret and (secrets == "refuse" or not has_content(safe.replace(REDACTED, ""))):
            continue
        read = [] if secret or request.language not in ("en", "zh") else list(_read(sentence, message, people))
        made += _complete(read, safe) if read else [_verbatim(safe, message)]
    return list({(statement.name, statement.subject): statement for statement in made}.values())


def _asserted(request: ExplicitRequest) -> Sequence[str]:
    """The sentences of the content without the questions that follow it."""
    found = [request.content[start:end] for start, end in spans(request.content)]
    told = [sentence for sentence in found if has_content(sentence) and not is_question(sentence)]
    return told or [request.content]


def _read(sentence: str, message: SourceMessage, people: People) -> Iterator[Statement]:
    if len(sentence) <= LONGEST_SENTENCE and kind(sentence) == "assertion":
        for statement in of_sentence(sentence, message, people):
            yield statement.model_copy(update={"importance": "high"})


def _complete(read: Sequence[Statement], sentence: str) -> list[Statement]:
    """The statements of a sentence; words that none of them holds are kept in the first one's description."""
    held = fold(" ".join(f"{statement.name} {statement.value or ''}" for statement in read))
    if all(fold(term).rstrip("s") in held for term in terms(sentence)):
        return list(read)
    first = read[0].model_copy(update={"description": sentence})
    return [first, *read[1:]]


def _verbatim(sentence: str, message: SourceMessage) -> Statement:
    name = sentence.strip().rstrip(".。").strip() or sentence.strip()
    return Statement(
        name=name[:255],
        entity_type="fact",
        description=sentence.strip(),
        importance="high",
        valid_from=message.at,
        properties={"category": "explicit"},
        quote=sentence.strip(),
        message_id=message.id,
    )
