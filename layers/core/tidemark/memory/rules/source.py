"""Which parts of a message are its author's own assertions: what is pasted, injected, coded or staged is blanked out in place."""

import re

# Whole stretches that are not the author's words. Each is replaced by line breaks, so that offsets stay.
FOREIGN = re.compile(
    r"""
      ^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)                                 # fenced code, closed or not
    | `[^`\n]+`\ *=|^(?:\ {4,}|\t)\S[^\n]*$                                                     # indented code
    | <[!/]?[A-Za-z][^<>\n]*>                                                               # a lone tag
    | ^[ \t]*[>|][^\n]*$                                                                        # quoted lines and tables
    | ^[ \t]*[\[{]\s*["\[{][^\n]*$ | ^[ \t]*["'][\w-]+["']\s*:[^\n]*$                               # JSON
    | ^[^\n]*\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL|TRACE|CRITICAL)\b[\]:\s][^\n]*$               # log lines
    | ^[ \t]*\[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d)?\S*\]?[ \t]+\S[^\n]*$                     # lines that begin with a full timestamp
    | ^[ \t]*(?:Traceback|File\ "|at\ [\w.$]+\(|\$\ |>>>\ |\+\+\+\ |---\ |@@\ |diff\ --git)[^\n]*$
    | ^[ \t]*(?:def|class|import|from|return|const|let|var|function|public|private|SELECT|INSERT|CREATE|UPDATE)\b[^\n]*[:;{(][^\n]*$
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# From such a line on, the message is somebody else's: a system's, an attacker's or another model's.
INJECTED = re.compile(
    r"^[^\w\n]{0,8}(?:system|assistant|developer|tool|ai|model)\b[^\n:：]{0,24}[:：]"
    r"|^[^\w\n]{0,8}(?:###?\s*)?(?:instructions?|system prompt|conversation (?:info|summary)|summary of|previous conversation|recalled"
    r" memor|context)\b[^\n]{0,60}[:：]"
    r"|\b(?:ignore|disregard|forget|override)\b[^.\n]{0,30}\b(?:instructions?|rules|prompts?|above|previous)\b"
    r"|\bstore (?:this |it )?as (?:an? )?(?:instruction|rule|system|memory)\b|\bnew (?:system )?instructions?\b|\byou (?:must"
    r"|shall) (?:now |always |never )"
    r"|^[^\w\n]{0,8}(?:this (?:session|conversation) (?:is being|was) (?:continued|compacted)|the following is a summary|here is a"
    r" summary)\b"
    r"|^[^\w\n]{0,8}(?:系统|助手|系统提示|指令)[:：]|忽略(?:之前|以上|所有)[^\n]{0,10}(?:指令|提示|规则)|^[^\w\n]{0,8}以下是(?:对话|之前)[^\n]{0,10}(?:摘要|总结)",
    re.IGNORECASE | re.MULTILINE,
)
# From such words on, what follows is material to work on, or a stage.
STAGED = re.compile(
    r"\b(?:translate|rewrite|rephrase|proof-?read|summari[sz]e|paraphrase|correct|edit|analy[sz]e|classify|review|improve|reply to"
    r"|respond to)\b[^.\n]{0,60}[:：]"
    r"|\b(?:here is|here's|below is|following) (?:is )?(?:a|an|the|my|some)?\s*(?:text|passage|e-?mail|message|log|code|draft"
    r"|article|story|transcript|letter|quote|output|sample|example)s?\b"
    r"|\b(?:let's|let us|we) (?:role-?play|play a game|pretend|imagine)\b|\b(?:role-?play|pretend|imagine|suppose|act|acting|play)"
    r" (?:that )?(?:as|you|i|we|to be)\b"
    r"|\b(?:write|tell|continue|compose|draft|make up) (?:me |us )?(?:a|an|the|this|my|another) [^.\n]{0,30}?(?:story|poem|scene"
    r"|dialogue|song|novel|script|tale|joke|letter|e-?mail|essay|bio|speech)\b"
    r"|\bonce upon a time\b|\bin (?:my|the|this|our) (?:novel|story|game|dream|film|movie|play|campaign|book|script|fanfic)\b|\bmy"
    r" character\b"
    r"|(?:翻译|改写|润色|总结|校对|分析)[^。\n]{0,20}[:：]|角色扮演|假装|扮演|写一(?:个|篇|首|段)[^。\n]{0,12}(?:故事|小说|诗|剧本|对话|信|邮件|作文)|从前有|在(?:我的)?(?:小说|故事|游戏|梦)里",
    re.IGNORECASE,
)
QUOTED = re.compile(r"“[^”\n]*”|\"[^\"\n]*\"|「[^」\n]*」|『[^』\n]*』|(?<!\w)'[^'\n]{3,}'(?!\w)")


# Nobody tells of themselves at such length: what stands behind is pasted.
LONGEST = 12_000
OPENING = re.compile(r"<([A-Za-z][\w:-]*)(?:\s[^<>]*)?>")


def _without_wrappers(text: str) -> str:
    """The text with every tagged stretch blanked out; one pass, however many tags never close."""
    kept, place = [], 0
    last: dict[str, int] = {}
    for opening in OPENING.finditer(text):
        close = f"</{opening[1]}"
        if opening.start() < place or last.setdefault(close, text.rfind(close)) < opening.end():
            continue
        end = text.find(close, opening.end())
        stop = text.find(">", end) + 1 or len(text)
        kept += [text[place : opening.start()], "\n" * (stop - opening.start())]
        place = stop
    return "".join([*kept, text[place:]])


def own_words(content: str) -> str:
    """The beginning of a message with everything foreign blanked out in place."""
    text = FOREIGN.sub(lambda found: "\n" * len(found[0]), _without_wrappers(content[:LONGEST]))
    for mark in (INJECTED, STAGED):
        found = mark.search(text)
        if found:
            start = text.rfind("\n", 0, found.start()) + 1 if mark is INJECTED else _sentence_start(text, found.start())
            text = text[:start] + "\n" * (len(text) - start)
    return text


def _sentence_start(text: str, place: int) -> int:
    ends = [found.end() for found in re.finditer(r"[.!?。！？]\s+|[。！？]|\n", text[:place])]
    return ends[-1] if ends else 0
