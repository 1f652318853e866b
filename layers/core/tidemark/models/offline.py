"""The offline model: no language model behind it, honest about that. It quotes, selects and applies rules; it invents nothing.

It calls no tools, follows no instruction inside the content it reads, and gives the same answer to the same request.
"""

import re
from collections.abc import Iterator

from tidemark.models import tokenizer
from tidemark.models.offline_answer import answer
from tidemark.models.offline_summary import summarize
from tidemark.models.ports import FinishReason, ModelRequest, ModelResponse, TextDelta, Usage

# A piece of a stream: a few words, or a few characters where a script has no spaces.
PIECE = re.compile(r"(?:\S{1,24}\s*){1,4}|\s+", re.DOTALL)


class OfflineModel:
    """A Model that needs neither a network nor credentials."""

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        whole = self._text(request)
        text = tokenizer.cut(whole, request.max_tokens)
        for piece in PIECE.findall(text):
            yield TextDelta(text=piece)
        finish: FinishReason = "stop" if text == whole else "length"
        usage = Usage(input_tokens=tokenizer.count_request(request), output_tokens=tokenizer.count(text))
        yield ModelResponse(text=text, finish_reason=finish, usage=usage, model=request.model_id)

    def _text(self, request: ModelRequest) -> str:
        if request.purpose == "summary":
            return summarize(request)
        if request.purpose == "extraction":
            # Facts are extracted by rules, behind the Extractor port; as a model this one has found none.
            return '{"statements": []}'
        return answer(request)
