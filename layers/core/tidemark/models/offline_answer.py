"""The offline model's answers: the sentences of its context that best cover the words of the question, quoted."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.conversations.blocks import memory_lines, summary_text
from tidemark.models import tokenizer
from tidemark.models.ports import ModelMessage, ModelRequest
from tidemark.text import is_question, language, sentences, term_pattern, terms

ANSWER_TOKENS, QUOTE_TOKENS, QUOTES = 110, 70, 3
# Words of a question beyond these change nothing about what it asks.
MOST_TERMS = 24
# A sentence counts as relevant when it covers this share of the question's words, weighted by their rarity.
RELEVANT = 0.55
# Where several sentences cover a question alike, the one nearer to the user's own words is quoted.
TRUST = {"memory": 0.06, "history": 0.05, "attachment": 0.04, "tool": 0.04, "summary": 0.02, "assistant": 0.0}

LEADS = {
    "en": {
        "memory": "From what I remember: {}",
        "history": "Earlier in this conversation you said: {}",
        "assistant": "Earlier in this conversation it was said: {}",
        "summary": "From the record of this conversation: {}",
        "attachment": "From the attached text: {}",
        "tool": "From the tool's result: {}",
    },
    "zh": {
        "memory": "据我所记：{}",
        "history": "你在这次对话中说过：{}",
        "assistant": "这次对话中提到过：{}",
        "summary": "根据对话记录：{}",
        "attachment": "附件中写道：{}",
        "tool": "工具结果显示：{}",
    },
}
NOTHING = {
    "en": "I have nothing on that. I am an offline model without a language model behind me: I only quote what I was told.",
    "zh": "关于这一点我没有任何记录。我是离线模型，没有语言模型支持，只能引用已有的内容。",
}
GREETING = {
    "en": "Hello. I am an offline model: I can quote what we talked about or what I remember.",
    "zh": "你好。我是离线模型，可以引用我们谈过或我记得的内容。",
}
HEARD = {
    "en": "I have read that. I am an offline model: ask me about it, and I will quote it.",
    "zh": "已读。我是离线模型，你可以随时问我，我会引用原话。",
}
GREET = re.compile(
    r"^\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|day|night)|greetings|thanks?(?: you)?|bye)\b"
    r"|你好|您好|早上好|晚上好|早安|大家好|谢谢|再见)[^?？]{0,30}$",
    re.IGNORECASE,
)
ASKING = re.compile(
    r"^(?:please\s+)?(?:tell|show|give|list|remind|describe|explain|find|look up|summari[sz]e|recall)\b|^(?:请|告诉|说说|介绍|列出)",
    re.IGNORECASE,
)
# A question about oneself is answered by what is said of oneself before what is said of others.
OWN_FACT = re.compile(r"\b(?:i|i'm|my|me|the user|the user's)\b|我|用户", re.IGNORECASE)
# What this model itself said is no evidence.
OWN = re.compile(
    "|".join(re.escape(text.split("{}")[0][:24]) for leads in LEADS.values() for text in [*leads.values()]) + "|offline model|离线模型"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    source: str
    place: int


def answer(request: ModelRequest) -> str:
    """A short answer to the last user message."""
    question = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    framing = "zh" if language(question) == "zh" else "en"
    asks = (
        is_question(question.strip())
        or any(is_question(sentence) for sentence in sentences(question[:4000]))
        or bool(ASKING.match(question))
    )
    if not asks:
        return GREETING[framing] if GREET.match(question) else HEARD[framing]
    patterns = [term_pattern(term) for term in terms(question[-2000:])[:MOST_TERMS]]
    best = _best(patterns, list(_candidates(request, "|".join(patterns))), bool(OWN_FACT.search(question))) if patterns else []
    return _quote(best, framing) if best else NOTHING[framing]


def _candidates(request: ModelRequest, wanted: str) -> Iterator[Candidate]:
    """Every sentence that may be quoted, once where it was said last, of the texts with a wanted word; the question itself is none."""
    relevant = re.compile(wanted, re.IGNORECASE)
    texts = [("memory", line) for line in memory_lines(request.memory or "")]
    texts += [("summary", _plain(line)) for line in summary_text(request.summary or "").splitlines()]
    last = max((place for place, message in enumerate(request.messages) if message.role == "user"), default=-1)
    for place, message in enumerate(request.messages):
        texts += [("attachment", attachment.text) for attachment in message.attachments]
        if place != last:
            texts.append((_source(message), message.content))
    found = {}
    for place, (source, text) in enumerate(texts):
        if relevant.search(text) and (source != "assistant" or not OWN.search(text)):
            found.update({(source, sentence): Candidate(sentence, source, place) for sentence in sentences(text)})
    yield from sorted(found.values(), key=lambda candidate: candidate.place)


def _plain(line: str) -> str:
    """A line of a summary without its bullet, its speaker and its heading."""
    return "" if line.startswith("#") else re.sub(r"^- (?:[^:：\s]{1,40}[:：] )?", "", line).strip()


def _source(message: ModelMessage) -> str:
    return {"user": "history", "assistant": "assistant", "tool": "tool"}[message.role]


def _best(wanted: Sequence[str], candidates: Sequence[Candidate], own: bool) -> list[Candidate]:
    """The candidates that cover the question best, none below the threshold."""
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in wanted]
    hits = {
        place: found
        for place, candidate in enumerate(candidates)
        if (found := {term for term, pattern in enumerate(patterns) if pattern.search(candidate.text)}) and not is_question(candidate.text)
    }
    weights = _weights(len(wanted), list(hits.values()), len(candidates))
    total = sum(weights)
    scored = []
    for place, found in hits.items():
        covered = sum(weights[term] for term in found) / total
        if covered >= RELEVANT:
            # Of two that cover alike, the one with fewer other words is closer to an answer.
            density = 0.1 / (1 + len(candidates[place].text.split()))
            theirs = 0.15 if own and OWN_FACT.search(candidates[place].text) else 0.0
            scored.append((covered + TRUST[candidates[place].source] + density + theirs, place))
    scored.sort(reverse=True)
    top = [candidates[place] for score, place in scored if score >= 0.9 * scored[0][0]]
    return [candidate for candidate in top if candidate.source == top[0].source]


def _weights(size: int, hits: Sequence[set[int]], among: int) -> list[float]:
    """How rare each word of the question is among the candidates; one that nobody uses weighs as much as the others do."""
    frequency = [sum(term in found for found in hits) for term in range(size)]
    rarity = [math.log(1 + among / count) if count else 0.0 for count in frequency]
    used = [weight for weight in rarity if weight]
    mean = sum(used) / len(used) if used else 1.0
    return [weight or mean for weight in rarity]


def _quote(best: Sequence[Candidate], framing: str) -> str:
    """The best few, each once, shortened so that the answer stays short."""
    quotes: list[str] = []
    for candidate in best:
        text = " ".join(candidate.text.split())
        short = tokenizer.cut(text, QUOTE_TOKENS)
        quote = text if short == text else short.rstrip() + "…"
        if quote.casefold() not in {known.casefold() for known in quotes}:
            quotes.append(quote)
    lead = LEADS[framing][best[0].source]
    size = next(
        n for n in range(min(QUOTES, len(quotes)), 0, -1) if n == 1 or tokenizer.count(lead + " ".join(quotes[:n])) <= ANSWER_TOKENS
    )
    return lead.format(" ".join(quotes[:size]) if all(quote[-1] in ".!。！…" for quote in quotes[:size]) else "; ".join(quotes[:size]))
