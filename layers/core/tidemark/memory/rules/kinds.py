"""What a sentence does. Only an assertion in the author's own name is remembered."""

import re
from typing import Literal

from tidemark.text import CJK, is_question

Kind = Literal["assertion", "question", "hypothetical", "command", "reported", "junk"]

HYPOTHETICAL = re.compile(
    r"\b(?:if|would|wouldn't|could have|should have|might|maybe|perhaps|possibly|imagine|suppose|supposing|supposedly|unless|wish"
    r"|hypothetically|pretend|assuming"
    r"|let's say|what about|as though|in case|not sure|unsure|wonder|wondering|apparently|allegedly|for example|e\.g)\b"
    # in front of these "'d" is "would", which "had" takes a participle of
    r"|['’]d (?:really |also |never |always )?(?:hate|dislike|be|do|go|have|say|want|need|buy|move|live|work|take|give|see)\b",
    re.IGNORECASE,
)
# "would like to" tells a goal, "if" behind "see" or "check" stands in a request anyway.
WISH = re.compile(r"\b(?:i|we)(?:'d| would) (?:really |also )?(?:like|love|prefer|rather)\b", re.IGNORECASE)
ZH_HYPOTHETICAL = re.compile(r"如果|要是|假如|假设|倘若|万一|也许|可能|或许|大概|说不定|想象|假装|比如|例如|不确定|是否")

COMMAND_VERBS = (
    "write|tell|show|give|explain|run|help|make|create|find|fix|list|translate|summari[sz]e|let|stop|go|check|send|remind|describe"
    "|add|remove|delete|update|change"
    "|generate|compare|look|open|close|read|use|try|keep|put|set|turn|call me back|wait|continue|suggest|recommend|draft|build"
    "|implement|refactor|compute|calculate"
    "|convert|search|book|buy|take|schedule|cancel|plan|do|don't|do not|never|always|ignore|forget|remember|note|answer|reply|ask"
    "|consider|think|repeat|print|echo"
    "|install|deploy|test|review|proofread|rewrite|rephrase|outline|walk|talk|start|begin|finish|provide|define|solve|choose|pick"
    "|name|design|analy[sz]e|be|act|say|get"
)
COMMAND = re.compile(
    rf"^(?:(?:please|kindly|ok(?:ay)?|now|then|also|and|just|so|hey|hi|first|next|finally|alright|sure)[,:]?\s+)*(?:please\b"
    rf"|(?:{COMMAND_VERBS})\b(?!\s+(?:is|are|was|were|has|had)\b))"
    r"|^(?:no need|there(?:'s| is) no need|never mind|nevermind|feel free|make sure|shall we|let's|lets)\b"
    r"|\b(?:can|could|would|will) you\b|\bi(?:'d| would)? (?:need|want|like|expect|prefer) you\b|\byou (?:do not|don't|need"
    r"|needn't|should|can|could|have to|may|must|might|will|are|were)\b"
    r"|\bi(?:'d| would)? (?:want|need|like|love|am trying|'m trying) to (?:know|ask|understand|(?:see|hear) (?:if|how|what|whether"
    r"|why|some|an|your|more)|find out|check|confirm"
    r"|talk|discuss|clarify|say|make sure)\b"
    r"|\bi (?:still )?have (?:a|an|another|one|some|two|no) (?:\w+ )?(?:questions?|favou?rs?|requests?)\b|\b(?:i am|i'm)"
    r" (?:looking for|asking|wondering|curious|trying to (?:understand|figure))\b",
    re.IGNORECASE,
)
# These begin a fact as often as an order: a colon or a subject behind them decides.
NOT_COMMAND = re.compile(
    r"^(?:remember|note|fyi|for the record|never in my life|keep in mind)[,:]?\s*(?:this"
    r"|that)?[,:]?\s+(?=(?:i|my|we|our|the)\b)",
    re.IGNORECASE,
)
ZH_COMMAND = re.compile(
    r"^(?:那|好|嗯|现在|然后|再)?[，,]?(?:请|帮我|帮忙|麻烦|给我|告诉我|写|列出|解释|介绍|翻译|总结|生成|推荐|不要|别|不用|无需|不必|没必要|让我们|我们来|来|试试|看看|说说|讲讲|记得|务必|打开|关闭|运行|检查)"
    r"|我想(?:知道|问|了解|请|让你|确认)|我(?:需要|想要|要)你|请你|你(?:应该|可以|能|需要|不用|不必|要)"
)
REPORTED = re.compile(
    r"\b(?:he|she|they|people|everyone|everybody|somebody|someone|(?!i\b|we\b)[\w'’]+) (?:said|says|claims?|claimed|thinks?"
    r"|thought|believes?|believed|told|tells|argues?|argued|insists?|mentioned|asked|asks|wrote|writes"
    r"|suggested|suggests|reckons|announced|announces|promised|heard)\b"
    r"|\b(?:i|we) (?:said|told|asked|heard|read|quoted|dreamed|dreamt|thought|replied)\b|\baccording to\b|\b(?:rumou?r|gossip) has"
    r" it\b|\bit is said\b",
    re.IGNORECASE,
)
ZH_REPORTED = re.compile(
    r"(?:他|她|他们|她们|别人|有人|大家|老师|同事|朋友|妈妈|爸爸|[\u4e00-\u9fff]{2,3})(?:告诉我|跟我说|对我说|说(?!话|得|(?:一点儿?|一些|点儿?|几句|流利的?)?[\u4e00-\u9fff]{1,4}[语话文])|声称|认为"
    r"|觉得)|据说|听说|据.{1,8}(?:报道|称)|我(?:听说|梦见|梦到|以为)"
)
SMALL_TALK = re.compile(
    r"^\W*(?!.*\b(?:i'm|i am|my name|call me)\b)(?:hi|hello|hey|good (?:morning|afternoon|evening|night|day)|thanks?|thank you"
    r"|many thanks|cheers|bye|goodbye|see you"
    r"|ok(?:ay)?|yes|no|yeah|yep|nope|sure|great|nice|cool|wow|lol|haha|fine"
    r"|perfect|awesome|sorry|welcome|congrat\w*|never mind|got it|i see|understood|makes sense|sounds good|no problem|good"
    r" (?:point|idea|job|luck)|well done|exactly|right|agreed|of course)\b[^:]{0,25}$"
    r"|^\W*(?:it|this|that|there|these|those|what|how|such)(?:'s|'re|\s+(?:is|are|was|were|has|had|will|looks?|sounds?|seems?"
    r"|feels?|works?|worked|helps?|helped|may|makes?|made|all))\b"
    r"|^\W*i(?:'m| am| feel| was) (?:\w+ )?(?:fine|good|ok(?:ay)?|great|well|sorry|sure|back|here|happy|glad|sad|tired|bored|hungry"
    r"|sleepy|busy|confused|lost|ready|done|excited|curious|so|thankful|grateful|impressed|stuck)\b(?! (?:at|in)\b)"
    r"|^\W*i (?:see|understand|agree|disagree|guess|think so|hope so|know(?! how to)|have (?:no|any) (?:idea|clue|opinion|doubt"
    r"|preference)|appreciate (?:it|that|your)|get it|(?:cannot|can't) (?:wait|help|say|tell|see|think|remember|understand|believe"
    r"|find|agree|do)|am unable|am not able|do not know|don't know|love (?:it|that|this|you)|like (?:it"
    r"|that|this|you)|hate (?:it|that|this))\b[^.]{0,30}$"
    r"|^\W*(?:i (?:cannot|can't|am unable to|am not able to|won't) (?:help|assist|do|provide|comply|fulfil|continue|answer))\b"
    r"|^\W*(?:sounds|looks|seems|feels|here(?:'s| is| are)|glad|good to|nice to|great to|so (?:glad|happy|proud)|makes|works)\b"
    r"|\bas an ai\b|\blanguage model\b"
    r"|^\W*(?:你好|您好|谢谢|多谢|好的|好吧|嗯|哈哈|再见|早上好|晚上好|晚安|没事|没问题|对|是的|不是|行|可以|太好了|不错|明白了?|知道了|抱歉|对不起|辛苦了|加油|我(?:很好|明白|知道|同意|不知道|累了|饿了"
    r"|不能(?:帮|提供|回答|协助)"
    r"|无法).{0,8}|(?:这|那|它|真|太|好).{0,12})\W*$"
    r"|作为(?:一个)?(?:AI|人工智能)|我(?:爱|喜欢|想|恨)你",
    re.IGNORECASE,
)
# What takes the whole sentence back.
JOKE = re.compile(r"\b(?:just|only) (?:kidding|joking)\b|\bi(?:'m| am) (?:kidding|joking)\b|\bj/?k\W*$|开(?:个)?玩笑的?\W*$", re.IGNORECASE)
NO_CONTENT = re.compile(r"^[\W\d_]*$|^[\d\s:TZ./+-]+(?:am|pm|utc|gmt)?$|^\S+$", re.IGNORECASE)
ELLIPSIS = re.compile(r"(?:\.\.\.|…|-|,|，)$")


def kind(sentence: str) -> Kind:
    """The kind of a sentence, the refusing kinds first."""
    chinese = bool(CJK.search(sentence))
    if _is_junk(sentence, chinese):
        return "junk"
    if is_question(sentence):
        return "question"
    if (ZH_COMMAND if chinese else COMMAND).search(sentence) and not NOT_COMMAND.search(sentence):
        return "command"
    if (ZH_HYPOTHETICAL if chinese else HYPOTHETICAL).search(WISH.sub("I want", sentence)):
        return "hypothetical"
    return "reported" if (ZH_REPORTED if chinese else REPORTED).search(sentence) else "assertion"


def takes_back(sentence: str) -> bool:
    """Whether a sentence begins by calling the one before it a joke: "Just kidding." """
    return JOKE.match(sentence.lstrip()) is not None


def _is_junk(sentence: str, chinese: bool) -> bool:
    plain = sentence.strip().rstrip(" .!…。！~～")
    if not chinese and NO_CONTENT.match(plain):
        return True
    return not any(character.isalpha() for character in plain) or bool(SMALL_TALK.search(plain) or JOKE.search(plain))
