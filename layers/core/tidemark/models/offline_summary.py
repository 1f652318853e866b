"""The offline model's summaries: under CLIO's headings, the sentences that carry exact values, decisions and open points.

What an earlier summary carried outranks new sentences of the same weight, so that an early fact survives every fold; filler goes first.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.conversations.blocks import summary_text
from tidemark.models import tokenizer
from tidemark.models.offline_answer import OWN
from tidemark.models.ports import ModelMessage, ModelRequest
from tidemark.text import HAN, is_question, language, sentences, term_pattern, terms

SECTIONS = ("objective", "requirements", "progress", "findings", "decisions", "files", "open", "next")
HEADINGS = {
    "en": ("Objective", "Requirements", "Progress", "Findings", "Decisions", "Files", "Open threads", "Next step"),
    "zh": ("目标", "要求", "进展", "发现", "决定", "文件", "未决事项", "下一步"),
}
NONE = {"en": "(none recorded)", "zh": "（无记录）"}
SPEAKERS = {"en": {"user": "user", "assistant": "assistant", "tool": "tool"}, "zh": {"user": "用户", "assistant": "助手", "tool": "工具"}}
# A line longer than this is cut down to the part around its first exact value.
LINE_TOKENS = 70
# Of the budget, what lines of the earlier summary may take while new lines with exact values wait.
CARRIED_SHARE = 0.75
# Below this budget empty headings are left out.
ALL_HEADINGS_FROM = 300

PATH = re.compile(
    r"(?<!\w)(?:~?/[\w.-]+(?:/[\w.-]+)+|[A-Za-z]:\\[\w\\.-]+|(?<!-)[\w-]+\.(?:py|ts|js|md|json|ya?ml|txt|csv|pdf|toml|go|rs|java|sql|sh"
    r"|html|css))\b"
)
EXACT = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|(?<!\w)~?/[\w.-]+(?:/[\w.-]+)+|\d+(?:[.,:/-]\d+)*|\b\w*\d[\w-]*\b|\b[A-Z]{2,}[\w-]*\b"
    r"|[“\"「『《][^”\"」』》]{1,60}[”\"」』》]"
)
NAME = re.compile(r"(?<=[a-z,;:0-9] )(?!I\b|I')[A-Z]\w+(?:[ -][A-Z]\w+)*|(?<=[a-z,;] )\w+[A-Z]\w*")
ZH_NAME = re.compile(rf"(?:叫|名为|名字是|住在|位于)[{HAN}\w]{{2,}}|[{HAN}]{{2,4}}(?:路|街|市|省|区|县|港|码头|公司|大学|医院)")
CUES = {
    "decisions": re.compile(
        r"\b(?:decided|agreed|chose|chosen|settled on|we(?:'ll| will) (?:go with|use)|approved|rejected)\b|决定|选定|商定|同意|敲定",
        re.I,
    ),
    "open": re.compile(
        r"\b(?:todo|to-do|open (?:point|question|issue|thread)|pending|unresolved|not yet|still (?:need|have to|missing)|blocked"
        r"|waiting for)\b|待办|待定|尚未|还没|未解决|等待",
        re.I,
    ),
    "next": re.compile(r"\bnext (?:step|up|we|i)\b|\b(?:tomorrow|afterwards) (?:we|i)\b|下一步|接下来", re.I),
    "requirements": re.compile(
        r"\b(?:must|should|has to|have to|require[sd]?|need(?:s|ed)? to|never|always|at most|at least|no more than|budget"
        r"|deadline)\b|必须|需要|不要|不得|要求|预算|截止",
        re.I,
    ),
    "objective": re.compile(
        r"\b(?:(?:my|our|the) (?:goal|aim|objective)|i (?:want|need|would like|plan) to|i'd like to|help me|we(?:'re| are)"
        r" (?:planning|building))\b|我想|我要|帮我|目标|我们要",
        re.I,
    ),
    "progress": re.compile(
        r"\b(?:done|finished|completed|fixed|implemented|deployed|merged|released|added|created|sent|bought|booked|paid)\b|完成|修复"
        r"|部署|发布|已经|买了|订了",
        re.I,
    ),
}
LABEL = re.compile(r"^- (?:(?P<speaker>[^:：\s][^:：\n]{0,40})[:：] )?(?P<text>.+)$")


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence on its way into a summary."""

    section: str
    speaker: str
    text: str
    weight: float
    carried: bool
    place: int


def summarize(request: ModelRequest) -> str:
    """The new summary within the budget; empty only where there is no text at all."""
    earlier = summary_text(request.summary or "")
    lines = _carried(earlier)
    lines += _heard(request.messages, _focus(request.system), len(lines))
    framing = "zh" if language(" ".join(message.content[:2000] for message in request.messages) or earlier) == "zh" else "en"
    chosen = _choose(_distinct(lines), framing, request.max_tokens)
    text = _render(chosen, framing, request.max_tokens)
    return tokenizer.cut(text, request.max_tokens)


def _focus(system: str) -> list[str]:
    """The words that a compaction by hand asked to keep in view."""
    found = re.search(r"(?im)^focus:\s*(.+)$", system)
    return terms(found[1]) if found else []


def _carried(earlier: str) -> list[Line]:
    """The lines of an earlier summary, with their sections; one without headings gives findings."""
    known = {heading.casefold(): section for headings in HEADINGS.values() for heading, section in zip(headings, SECTIONS, strict=True)}
    section = "findings"
    lines: list[Line] = []
    for row in earlier.splitlines():
        title = row.strip().lstrip("#*").strip(" *:：").casefold()
        if title in known:
            section = known[title]
        elif row.strip() and row.strip("- ") not in NONE.values():
            lines += _carried_row(row.strip(), section, len(lines))
    return lines


def _carried_row(row: str, section: str, place: int) -> list[Line]:
    found = LABEL.match(row if row.startswith("- ") else f"- {row}")
    speaker, text = (found["speaker"] or "", found["text"]) if found else ("", row)
    return [Line(section, speaker, text, _weight(text, "user") + 0.5, carried=True, place=place)]


def _heard(messages: Sequence[ModelMessage], focus: Sequence[str], start: int) -> list[Line]:
    wanted = [re.compile(term_pattern(term), re.IGNORECASE) for term in focus]
    lines: list[Line] = []
    for message in messages:
        if message.role == "assistant" and OWN.search(message.content):
            continue
        texts = [message.content, *(f"{item.title}: {item.text}" for item in message.attachments)]
        for sentence in (sentence for text in texts for sentence in sentences(text)):
            bonus = 2.0 if any(pattern.search(sentence) for pattern in wanted) else 0.0
            speaker = message.name or message.role
            line = Line(
                _section(sentence, message.role),
                speaker,
                sentence,
                _weight(sentence, message.role) + bonus,
                carried=False,
                place=start + len(lines),
            )
            lines.append(line)
    return lines


def _weight(sentence: str, role: str) -> float:
    """How much would be lost with a sentence: exact values first, then names, then decisions and open points; 0 is filler."""
    exact = len(set(EXACT.findall(sentence)))
    names = len(NAME.findall(sentence)) + len(ZH_NAME.findall(sentence))
    cues = sum(bool(cue.search(sentence)) for cue in CUES.values())
    weight = 3.0 * min(exact, 3) + 2.0 * min(names, 3) + 1.5 * min(cues, 2)
    return weight * (1.0 if role == "user" else 0.6) - (1.0 if is_question(sentence) else 0.0) if weight else 0.0


def _section(sentence: str, role: str) -> str:
    if PATH.search(sentence):
        return "files"
    if is_question(sentence):
        return "open" if role == "user" else "progress"
    found = next((section for section, cue in CUES.items() if cue.search(sentence)), None)
    return found or ("findings" if EXACT.search(sentence) or NAME.search(sentence) or ZH_NAME.search(sentence) else "progress")


def _distinct(lines: Iterable[Line]) -> list[Line]:
    """Each sentence once, where it was first carried or said."""
    kept: dict[str, Line] = {}
    for line in lines:
        kept.setdefault(" ".join(line.text.casefold().split()).rstrip(".。"), line)
    return list(kept.values())


def _choose(lines: Sequence[Line], framing: str, budget: int) -> list[Line]:
    """The weightiest lines that fit, in the order in which they were said."""
    left = budget - _frame_tokens(framing, budget)
    ranked = sorted(lines, key=lambda line: (-line.weight, line.place))
    weighty = [line for line in ranked if line.weight > 0]
    filler = sorted((line for line in ranked if line.weight <= 0), key=lambda line: (line.carried, line.place))
    fresh = any(not line.carried for line in weighty)
    carried_left = int(left * CARRIED_SHARE) if fresh else left
    chosen, waiting = [], []
    for line in weighty:
        cost = _cost(line, framing)
        if line.carried and cost > carried_left:
            waiting.append(line)
        elif cost <= left:
            chosen.append(line)
            left -= cost
            carried_left -= cost if line.carried else 0
    for line in [*waiting, *filler[: 4 if chosen else 8]]:
        cost = _cost(line, framing)
        if cost <= left:
            chosen.append(line)
            left -= cost
    return sorted(chosen, key=lambda line: line.place) or list(ranked[:1])


def _frame_tokens(framing: str, budget: int) -> int:
    rows = [f"## {heading}\n- {NONE[framing]}\n\n" if budget >= ALL_HEADINGS_FROM else f"## {heading}\n\n" for heading in HEADINGS[framing]]
    return tokenizer.count("".join(rows)) if budget >= ALL_HEADINGS_FROM else min(budget // 4, tokenizer.count("".join(rows)))


def _cost(line: Line, framing: str) -> int:
    return tokenizer.count(_row(line, framing)) + 1


def _row(line: Line, framing: str) -> str:
    speaker = SPEAKERS[framing].get(line.speaker, line.speaker)
    text = _short(" ".join(line.text.split()))
    return f"- {speaker}: {text}" if speaker else f"- {text}"


def _short(text: str) -> str:
    """A long sentence cut down to the words around its exact values."""
    if len(text) < LINE_TOKENS or tokenizer.count(text) <= LINE_TOKENS:
        return text
    found = EXACT.search(text) or NAME.search(text)
    start = max(0, found.start() - 120) if found else 0
    begin = text.find(" ", start) + 1 if start else 0
    piece = tokenizer.cut(text[begin:], LINE_TOKENS)
    return ("…" if begin else "") + piece.rstrip() + ("…" if len(piece) < len(text) - begin else "")


def _render(lines: Sequence[Line], framing: str, budget: int) -> str:
    parts: list[str] = []
    for section, heading in zip(SECTIONS, HEADINGS[framing], strict=True):
        rows = [_row(line, framing) for line in lines if line.section == section]
        if rows or (budget >= ALL_HEADINGS_FROM and lines):
            parts.append("\n".join([f"## {heading}", *(rows or [f"- {NONE[framing]}"])]))
    return "\n\n".join(parts)
