"""Token counts that are never under, without a network: tiktoken over the vocabulary that lies beside this module.

Special tokens in a text are counted as the ordinary text they are. A provider with another tokenizer gets a factor from the registry.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import ceil
from pathlib import Path

from tiktoken import Encoding

from tidemark.models.ports import ModelMessage, ModelRequest, ToolDefinition

# Role, delimiters and the name field around one message: OpenAI documents 3 and 1.
MESSAGE_OVERHEAD = 4
# Tags and labels with which an adapter frames one attachment, and one tool's JSON.
ATTACHMENT_OVERHEAD = 16
CALL_OVERHEAD = 12
TOOL_OVERHEAD = 12
# The tokenizer's regular expression is safe far beyond this length; longer texts are counted in pieces.
CHUNK = 60_000
# What a cut inside one run without a space may hide, since merges do not cross it.
CUT_SLACK = 16

VOCABULARY = Path(__file__).with_name("data") / "o200k_base.tiktoken"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# The pre-tokenizer that belongs to the o200k_base vocabulary; tests compare it with tiktoken's own.
PATTERN = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


@cache
def encoding() -> Encoding:
    """The immutable encoding, read on first use."""
    rows = (line.split() for line in VOCABULARY.read_bytes().splitlines())
    ranks = {b64decode(token): int(rank) for token, rank in rows}
    return Encoding(name="o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def scaled(tokens: int, factor: float) -> int:
    """A count in another tokenizer's tokens, rounded up."""
    return ceil(tokens * factor)


def count(text: str, factor: float = 1.0) -> int:
    """Tokens of a text, never under."""
    if not text:
        return 0
    return scaled(sum(len(encoding().encode_ordinary(chunk)) + slack for chunk, slack in _chunks(text)), factor)


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Pieces of a long text, each with the slack of its cut: none in front of a blank that ends a word, where no token crosses."""
    start = 0
    while len(text) - start > CHUNK:
        cuts = re.finditer(r"(?<=\S)(?= )", text[start : start + CHUNK])
        last = max((cut.start() for cut in cuts), default=0)
        yield text[start : start + (last or CHUNK)], 0 if last else CUT_SLACK
        start += last or CHUNK
    yield text[start:], 0


def cut(text: str, tokens: int) -> str:
    """The longest beginning that the tokenizer gives at most so many tokens, never half a character."""
    if tokens <= 0:
        return ""
    # No token of the vocabulary spans more than 128 characters.
    ids = encoding().encode_ordinary(text[: tokens * 128])
    if len(ids) <= tokens and len(text) <= tokens * 128:
        return text
    for size in range(tokens, 0, -1):
        piece = encoding().decode_bytes(ids[:size]).decode("utf-8", "ignore")
        if text.startswith(piece) and count(piece) <= tokens:
            return piece
    return ""


def count_message(message: ModelMessage, factor: float = 1.0) -> int:
    """Tokens of one message with all its parts and its overhead."""
    parts = [message.content, message.name or "", message.tool_call_id or ""]
    extra = MESSAGE_OVERHEAD
    for call in message.tool_calls:
        parts += [call.id, call.name, json.dumps(call.arguments, ensure_ascii=False)]
        extra += CALL_OVERHEAD
    for attachment in message.attachments:
        parts += [attachment.source_id, attachment.title, attachment.text]
        extra += ATTACHMENT_OVERHEAD
    return scaled(_total(parts) + extra, factor)


def count_tools(tools: Sequence[ToolDefinition], factor: float = 1.0) -> int:
    """Tokens of the tool definitions as JSON; none for no tools."""
    definitions = [json.dumps(tool.model_dump(), ensure_ascii=False) for tool in tools]
    return scaled(_total(definitions) + TOOL_OVERHEAD * len(definitions), factor)


def count_request(request: ModelRequest, factor: float = 1.0) -> int:
    """Tokens of everything a model reads in one call."""
    head = [part for part in (request.system, request.memory, request.summary) if part]
    total = _total(head) + MESSAGE_OVERHEAD * len(head) + sum(count_message(message) for message in request.messages)
    return scaled(total + count_tools(request.tools), factor)


def _total(texts: Iterable[str]) -> int:
    return sum(count(text) for text in texts)
