"""Chinese clauses to drafts with their subjects."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tidemark.memory.dates import resolve
from tidemark.memory.exclusive import FAVOURITE, SKILL, exclusive
from tidemark.memory.exclusive import preference as preference_of
from tidemark.memory.model import Mention, Polarity, SourceMessage
from tidemark.memory.rules.draft import USER, Draft, Subject
from tidemark.memory.rules.people import SINGLE_ROLES, ZH_KIN, People, role_of

Found = tuple[Draft, Subject]
Rule = Callable[[re.Match[str], str], Draft | None]

MARKER = re.compile(
    r"^(?:其实|另外|对了|顺便说一下|顺便|还有|而且|然后|不过|但是|但|所以|因为|那么|嗯|哦|啊|好的|是的|更正一下|更正|事实上|老实说|说实话|目前|现在|最近|如今|平时|请?记住|你好|您好"
    r"|大家好|嗨|我觉得|我想说)+[，,：:、\s]*"
)
TRAIL = re.compile(r"[。.!！~～、，,；;\s]+$|(?:啊|呀|哦|啦|嘛|哈|哈哈)[。.!！~～\s]*$")
# Adverbs that change nothing about what is said.
ADVERB = re.compile(
    r"^(?:现在|目前|一直|已经|最近|平时|真的|其实|也|都|还|就(?!职)|只|非常|特别|超级?|很|最|比较|更|挺|有点|从小|常常|经常|总是|一般|通常|刚刚?|终于|仍然|依然|还是|今年|去年|上个?月"
    r"|上周|昨天|今天|(?:\d{4}年|[去前今]年)?(?:\d{1,2}|十[一二]?|[一二三四五六七八九])月份?(?:\d{1,2}[日号])?|前天|上上?个?(?:周|星期|礼拜)[一二三四五六日天]?|\d{4}年)+"
)
SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘蒋蔡余杜叶程苏魏吕丁沈任姚卢傅钟"
SUBJECT = re.compile(
    rf"^(?P<we>我们(?:团队|公司|组)?|咱们)|^我的?(?P<role>{ZH_KIN})(?:叫|名叫)?(?P<kin>[A-Za-z][\w·]*|[\u4e00-\u9fff]{{2,3}}?(?=住在|在|喜欢|是|今年|会|不"
    rf"|讨厌))?|^(?P<i>我(?!的|们))|^(?P<he>他|她)(?!们|的)"
    rf"|^(?P<name>(?!马上|何时|何况|高兴|高中|方便|安全|周[一二三四五六日末])(?:[小老阿][\u4e00-\u9fff]|[{SURNAMES}][\u4e00-\u9fff]{{1,2}}|[A-Z][A-Za-z]+)"
    rf"(?=不?喜欢|住在|在|会说|讨厌|有一|爱|是|打算|想|对|养|叫))"
)
MINE = re.compile(
    r"^(?:我们?的|我(?=[\u4e00-\u9fff]{1,3}叫)|我家的?(?=[\u4e00-\u9fff]{1,3}叫)|我们?(?=老家|家|公司|办公室|学校|家乡|单位|团队)|(?P<other>(?!我|他|她"
    r"|你)[\u4e00-\u9fffA-Za-z]{2,12}?)的)(?P<what>[^，,是叫在的]{1,12}?)(?:的名字)?"
    r"(?P<verb>叫做?|名叫|取名为?|是|在|为|：|:)(?P<value>[^，,]{1,60})$"
)
KIN_IS = re.compile(
    rf"^我的?(?P<role>{ZH_KIN})(?:的名字)?(?:叫做?|名叫|是)(?P<name>[A-Za-z][\w·\s]*|[\u4e00-\u9fff·]{{2,4}})$"
    rf"|^(?P<name2>[A-Za-z][\w·]*|[\u4e00-\u9fff]{{2,3}})是我的?(?P<role2>{ZH_KIN})$"
)
FAVOURED = re.compile(
    r"^(?:我|我们)?最(?P<verb>喜欢|爱|喜爱|常用)(?:吃|喝|看|听|玩|用)?的(?P<what>[^是，,]{1,12})(?:是|就是)(?P<value>.+)$"
    r"|^我的最爱是(?P<value2>.+)$|^(?P<value4>[^，,是]{1,20})(?:是|就是)我的最爱$"
    r"|^(?P<value3>[^，,是]{1,20})(?:是|就是)(?:我|我们)最(?P<verb3>喜欢|爱|喜爱|常用)(?:吃|喝|看|听|玩|用)?的(?P<what3>[^是，,]{0,12})$"
)
ATTRIBUTE = re.compile(
    r"^(?P<what>[\u4e00-\u9fffA-Za-z]{0,12}(?:代号|名称|端口|地址|电话|号码|编号|预算|价格|日期|时间|期限|版本|负责人|域名|地点|状态|型号|房号|车牌|暗号))"
    r"(?:是|为|在|定为|改为|改成|定在|改到了?|：|:)(?P<value>[^，,]{1,60})$"
)
# What one does or went through, where no rule has a place for it.
LIFE = re.compile(
    r"(?:已经)?(?:每[天周月年]|报名|参加|骑|开车|坐|跑|走路|锻炼|健身|教|卖|租|收集|收藏|种|养|负责|管理|带领|毕业|考上|通过了|获得|赢|出生|长大|怀孕|生了|加入|完成|练|开了|创办|创业|经营|投资|写过|去过|当过|信"
    r"|失去|搬|换了|修|做饭|烘焙|画画|摄影|钓鱼|露营|滑雪|冲浪|游泳|爬山)"
)
HAPPENS = re.compile(r"改到|改在|定在|推迟|提前|安排在|开始|结束|截止|到期|举行|上线|发布|出发|起飞|开会|开业|关闭|修好|完成")
NOT_NAMED = re.compile(r"^(?:这|那|它|我|你|什么|谁|一个|一名|一位|很|不|在|去|来|有|的)")
NAME_STOP = re.compile(r"[，,。！!\s].*$")
EXACT = re.compile(r"\d|[A-Za-z]{2,}|[“\"《「]")
CITY = re.compile(
    r"^(?:北京|上海|广州|深圳|杭州|南京|成都|重庆|武汉|西安|苏州|天津|青岛|大连|厦门|长沙|郑州|宁波|香港|澳门|台北|国外|海外|美国|日本|英国|德国|法国|加拿大|新加坡|澳大利亚)$"
    r"|(?:市|省|区|县|镇|村)$"
)
WORKS = r"(?:工作|上班|任职|就职|实习|当差)"
PLACE_END = re.compile(r"(?:了|附近|那边|这边)+$")
CONDITIONS = (
    r"糖尿病|哮喘|[高低]血压|癫痫|关节炎|抑郁症|焦虑症|偏头痛|失眠症?|湿疹|鼻炎|心脏病|贫血|痛风|近视|乳糖不耐受?|自闭症|多动症"
    r"|[\u4e00-\u9fff]{1,6}[病症炎]"
)
ALLERGY = re.compile(r"过敏症?$")
MEASURE = r"[只条个辆台艘套匹头件把架部座间栋双对位盆棵]"
ABSTRACT = re.compile(r"问题|想法|疑问|时间|办法|意见|建议|事情?|点|会议|机会|困难|感觉|兴趣|空|意思")


def preference(found: re.Match[str], clause: str) -> Draft | None:
    thing = _object(found["o"])
    if not thing or re.match(r"^(?:你|您|它|这|那|他|她|的)", thing):
        return None
    key = re.sub("^[吃喝]", "", thing) or thing
    against = bool(found["no"]) or bool(re.match(r"讨厌|厌恶|受不了|恨|反感|害?怕|恐惧", found["v"]))
    return liked(thing, f"{found['no'] or ''}{found['v']}{thing}", preference_of(key), against=against)


def liked(thing: str, phrase: str, predicate: str, *, against: bool = False) -> Draft:
    """A thing that is liked or disliked, in the words in which it was said."""
    return Draft(
        phrase,
        "preference",
        "preference",
        "negative" if against else "positive",
        exclusive=predicate,
        value="不喜欢" if against else "喜欢",
        properties={"object": thing, "attitude": "dislikes" if against else "likes"},
    )


def home(found: re.Match[str], clause: str) -> Draft | None:
    place = PLACE_END.sub("", _object(found["o"]))
    place = re.sub(r"(?:工作|上班|生活|定居).*$", "", place)
    if not place or NOT_NAMED.match(place):
        return None
    away = bool(found["no"]) or bool(re.search(r"不再|不住|再也不", clause))
    where = Mention(name=place, entity_type="location")
    said = f"不住在{place}" if away else f"{found['v']}{place}"
    polarity: Polarity = "negative" if away else "positive"
    return Draft(
        said,
        "fact",
        "home",
        polarity,
        "high",
        exclusive="home",
        value=place,
        ends=away,
        mention=where,
        relation="located_in",
        properties={"home": place},
    )


def employer(found: re.Match[str], clause: str) -> Draft | None:
    org = found["o"]
    if CITY.search(org):
        where = Mention(name=org, entity_type="location")
        return Draft(clause, category="work place", mention=where, relation="located_in", properties={"work place": org})
    if NOT_NAMED.match(org) or org in ("家", "外地", "国外", "努力"):
        return None
    away = bool(found["no"])
    role = found.groupdict().get("role")
    said = f"不在{org}工作" if away else clause
    kept = {"employer": org} | ({"role": role} if role else {})
    made = Draft(
        said,
        category="work",
        importance="high",
        polarity="negative" if away else "positive",
        exclusive="employer",
        value=org,
        ends=away,
        properties=kept,
    )
    return replace(made, mention=Mention(name=org, entity_type="organization"), relation="works_at")


def former(found: re.Match[str], clause: str) -> Draft | None:
    return Draft(clause, category="former")


def habit(found: re.Match[str], clause: str) -> Draft | None:
    return Draft(clause, category="habit", properties={"habit": clause})


def study(found: re.Match[str], clause: str) -> Draft | None:
    school = Mention(name=found["o"], entity_type="organization")
    return Draft(clause, category="study", mention=school, relation="related_to", properties={"school": found["o"]})


def left_job(found: re.Match[str], clause: str) -> Draft | None:
    org = found["o"] or found["o2"]
    where = Mention(name=org, entity_type="organization")
    return Draft(
        clause, category="work", importance="high", exclusive="employer", value=org, ends=True, mention=where, relation="related_to"
    )


def job(found: re.Match[str], clause: str) -> Draft | None:
    role = found["o"]
    return Draft(clause, category="work", importance="high", exclusive="job", value=role, ends=bool(found["no"]), properties={"role": role})


def own_name(found: re.Match[str], clause: str) -> Draft | None:
    name = NAME_STOP.sub("", found["o"])
    if not name or NOT_NAMED.match(name):
        return None
    return Draft(
        f"名字是{name}", form="possessive", category="name", importance="high", exclusive="name", value=name, properties={"name": name}
    )


def skill(found: re.Match[str], clause: str) -> Draft | None:
    thing = _object(found["o"])
    if not thing or NOT_NAMED.match(thing):
        return None
    lacks = bool(found["no"])
    return Draft(
        clause,
        "skill",
        "skill",
        "negative" if lacks else "positive",
        exclusive=exclusive(SKILL, thing),
        value="no" if lacks else "yes",
        properties={"skill": thing},
    )


def health(found: re.Match[str], clause: str) -> Draft | None:
    thing = found["o"]
    lacks = bool(found["no"])
    return Draft(
        clause,
        category="health",
        importance="high",
        polarity="negative" if lacks else "positive",
        exclusive=exclusive("health", f"{ALLERGY.sub('', thing)}过敏" if ALLERGY.search(clause) else thing),
        value="no" if lacks else "yes",
        properties={"health": thing},
    )


def project(found: re.Match[str], clause: str) -> Draft | None:
    return Draft(clause, "project", "project", properties={"project": _object(found["o"])})


def goal(found: re.Match[str], clause: str) -> Draft | None:
    aim = found["o"].strip()
    if re.match(r"(?:知道|问|了解|请|你|说|看看|确认|起|法|念|象)", aim):
        return None
    return Draft(
        clause,
        "goal",
        "goal",
        "negative" if found["no"] else "positive",
        exclusive=exclusive("goal", aim),
        value="no" if found["no"] else "yes",
        properties={"goal": aim},
    )


def possession(found: re.Match[str], clause: str) -> Draft | None:
    thing = _object(found["o"])
    return None if ABSTRACT.search(thing) else Draft(clause, category="possession", properties={"thing": thing})


def age(found: re.Match[str], clause: str) -> Draft | None:
    return Draft(f"{found['o']}岁", category="age", exclusive="age", value=found["o"], properties={"age": found["o"]})


def uses(found: re.Match[str], clause: str) -> Draft | None:
    tool = _object(found["o"])
    return Draft(
        clause,
        "skill",
        "tool",
        "negative" if found["no"] else "positive",
        exclusive=exclusive("uses", tool),
        value="no" if found["no"] else "yes",
        properties={"tool": tool},
    )


def status(found: re.Match[str], clause: str) -> Draft | None:
    return Draft(clause, category="status", exclusive="civil status", value=found["o"], properties={"status": found["o"]})


def _rule(pattern: str, rule: Rule) -> tuple[re.Pattern[str], Rule]:
    return re.compile(f"^(?:{pattern})$"), rule


OBJECT = r"(?P<o>[^，,]+)"
NO = r"(?P<no>不再|再也不|并不|不太|不怎么|从不|不|没有|没)?"
RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    _rule(rf"(?:的名字)?(?:叫做?|名叫|的名字是|姓名是|名字是|名字叫){OBJECT}", own_name),
    _rule(r"(?:今年)?(?P<o>\d{1,3}|[一二三四五六七八九十]{1,3})岁了?", age),
    _rule(rf"{NO}(?P<v>住在|居住在|定居在?|搬到了?|搬去了?|搬家到了?|搬回了?|常住){OBJECT}", home),
    _rule(rf"(?P<no>(?!))?(?P<v>家(?:住在?|在)){OBJECT}", home),
    _rule(r"(?P<no>不再)?(?:就职|任职|供职|受雇)于(?P<o>[^，,]{1,30})", employer),
    _rule(rf"(?P<no>已经不|不再|不)在(?P<o>[^，,]{{1,30}}?){WORKS}了?", employer),
    _rule(
        rf"(?P<no>(?!))?在(?P<o>[^，,]{{1,30}}?)(?:{WORKS}(?:，?(?:当|做|担任)(?P<role>[^，,]+))?|(?:当|做"
        rf"|担任)(?:一?[名个位])?(?P<role2>[^，,]+))",
        employer,
    ),
    _rule(r"在(?P<o>[^，,]{1,20}?)(?P<no>(?!))?(?:读书|上学|念书|读大学|读研究?生?|读博士?|念大学|留学)", study),
    _rule(r"(?P<no>(?!))?(?:加入了?|入职了?|跳槽到了?)(?P<o>[^，,]{1,30}?)(?:了)?", employer),
    _rule(r"(?:从(?P<o>[^，,]{1,30}?)(?:离职|辞职|退休)了?|(?:离开了|辞去了?)(?P<o2>[^，,]{1,30}?)(?:的工作)?)", left_job),
    _rule(
        r"(?P<no>不再|不)?(?:是|当|做)(?:一?[名个位])?(?P<o>[^，,的]{0,8}(?:师|员|生|家|手|工|医|匠|者|经理|设计|主任|教授|总监|护士|警察|司机|厨师|农民|老板|店长|顾问|编辑|记者))",
        job,
    ),
    _rule(r"对(?P<o>[^，,]{1,20}?)(?P<no>不)?过敏", health),
    _rule(rf"(?P<no>没有|没)?(?:有|患有|患了|得了|患)(?P<o>{CONDITIONS})", health),
    _rule(r"(?P<no>不再|不)?(?:是|吃)(?:一?[名个位])?(?P<o>素食者|素食主义者|纯素者|素|左撇子|色盲)", health),
    _rule(rf"(?:以前|曾经|曾|过去|小时候)(?:是|在|住在?|做过?|当过?|养过?){OBJECT}", former),
    _rule(rf"(?P<no>(?!))?(?P<v>怕|害怕|恐惧){OBJECT}", preference),
    _rule(rf"(?:来自|出生在|出生于|老家在|毕业于){OBJECT}", former),
    _rule(r"(?:戒(?:掉)?|开始|放弃)(?P<o>[^，,]{1,12}?)(?:了|吧)?", habit),
    _rule(r"(?:已经)?(?P<o>结婚|离婚|单身|订婚|退休|失业|怀孕)了?", status),
    _rule(rf"{NO}(?P<v>喜欢|喜爱|热爱|偏爱|偏好|钟爱|爱(?:吃|喝|看|听|玩|用)?|讨厌|厌恶|受不了|恨|反感|害怕){OBJECT}", preference),
    _rule(rf"(?P<no>从不|不再|再也不|不能|不可以|不)(?P<v>吃|喝|抽|碰){OBJECT}", preference),
    _rule(
        rf"{NO}(?:会(?!在|去|来|有|是|被|议)(?:说|讲|弹|拉|用|写|做|打|唱|跳|开|游|修)?|懂|精通|擅长|熟悉|掌握|能说|(?:正)?在学习?|学过|学会了?|在教){OBJECT}",
        skill,
    ),
    _rule(rf"(?P<no>(?!))?(?:正)?在?(?:备考|准备考|复习考){OBJECT}", goal),
    _rule(r"(?:在[^，,]{1,12}?)?(?:开|经营|创办|拥有)了?(?P<o>(?:一|两|三|几)[家间个座][^，,]+)", possession),
    _rule(r"(?:刚刚?)?被?(?:提升为|提拔为|晋升为|升为|升任|升职为)(?:了)?(?:一?[名个位])?(?P<o>[^，,]+)(?P<no>(?!))?", job),
    _rule(r"(?P<no>不再|不)?(?:是(?:做|搞|干|从事)(?P<o>[^，,]{1,12})的)", job),
    _rule(rf"(?:正)?(?:在)(?:做|开发|写|忙|研发|负责|筹备|搭建|设计|翻修|准备){OBJECT}", project),
    _rule(rf"{NO}(?:想要?|打算|计划|希望|准备|梦想|决定|的目标是|目标是|立志){OBJECT}", goal),
    _rule(
        rf"(?:有|养了?|买了?|领养了?|收养了?|开)(?P<o>(?:[一两二三四五六七八九十\d]+|几){MEASURE}[^，,]+(?:，?(?:叫|名叫|名字叫)[^，,]+)?)",
        possession,
    ),
    _rule(rf"(?P<no>不再|不)?(?:用|使用|采用|改用|换成)(?:的是|了)?{OBJECT}", uses),
)


# The second half leaves out what the first has said.
MOVED_ON = re.compile(
    rf"(?:以前|之前|原来|曾经|过去)在(?P<old>[^，,]{{1,20}}?)(?P<verb>{WORKS})[，,](?:但是?)?(?:现在|如今|目前)在(?P<new>[^，,。]{{1,20}})$"
)


def drafts(sentence: str, message: SourceMessage, people: People) -> Iterator[Found]:
    """Everything that a sentence asserts; a clause without a subject goes on with the one before."""
    text = MOVED_ON.sub(r"以前在\g<old>\g<verb>，在\g<new>\g<verb>", TRAIL.sub("", MARKER.sub("", sentence.strip())))
    subject: Subject | None = None
    for clause in (_subject_first(part, message) for part in _clauses(text)):
        found = list(_whole(clause, people))
        if found:
            yield from found
            subject = _after(clause, people) or found[-1][1]
            continue
        subject, rest = _subject(clause, people, subject)
        if subject:
            yield from ((said, subject) for said in _predicate(rest, message))
        elif HAPPENS.search(clause) and resolve(clause, message.at):
            yield Draft(clause, form="whole", category="event", properties={"event": clause}), USER


def _clauses(text: str) -> list[str]:
    """Clauses at commas; "叫" behind a comma belongs to the thing in front of it."""
    parts = re.split(r"[，,；;]\s*(?!名?叫|名字)", text)
    cleaned = [re.sub(r"(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])", "", MARKER.sub("", part)).strip() for part in parts]
    return [TRAIL.sub("", part) for part in cleaned if part]


def _subject_first(clause: str, message: SourceMessage) -> str:
    """ "上周我去了巴黎" with its time behind the subject."""
    spans = resolve(clause, message.at)
    rest = clause[spans[0].stop :].lstrip("的，, ") if spans and spans[0].begin == 0 else ""
    found = SUBJECT.match(rest)
    return f"{found[0]}{clause[: spans[0].stop]}{rest[found.end() :]}" if found else clause


def _after(clause: str, people: People) -> Subject | None:
    """Whom the next clause is about when this one introduced a person."""
    person = people.meant() if KIN_IS.match(clause) else None
    return Subject(person.name, person, user=False) if person else None


def _whole(clause: str, people: People) -> Iterator[Found]:
    """Clauses whose form is a whole: favourites, relatives' names, things and their names or values."""
    favourite = FAVOURED.match(clause)
    if favourite:
        what, verb = favourite["what"] or favourite["what3"], favourite["verb"] or favourite["verb3"] or "喜欢"
        value = favourite["value"] or favourite["value2"] or favourite["value3"] or favourite["value4"]
        said = f"最{verb}的{what or ''}是{value}"
        if not what:  # of which kind was not said, so others of another kind may be favourites too
            yield liked(value, said, preference_of(value)), USER
            return
        yield Draft(said, "preference", "preference", exclusive=exclusive(FAVOURITE, what), value=value, properties={what: value}), USER
        return
    kin = KIN_IS.match(clause)
    name = (kin["name"] or kin["name2"]).strip() if kin else ""
    if kin and not NOT_NAMED.match(name) and not re.search(r"(?:师|员|生|人|家|经理|医生|护士)$", name):
        yield _role(kin["role"] or kin["role2"], name, people)
        return
    attribute = None if clause.startswith(("我", "他", "她", "你")) else ATTRIBUTE.match(clause)
    if attribute:
        what, value = attribute["what"], attribute["value"]
        yield Draft(clause, form="whole", category="attribute", exclusive=exclusive("attribute", what), value=value), USER
        return
    mine = MINE.match(clause)
    if mine and mine["what"] != "家" and not re.search(ZH_KIN, mine["what"]):
        yield from _thing(mine)


def _role(role: str, name: str, people: People) -> Found:
    person = people.named(role, name)
    single = exclusive("role", role_of(role)) if role in SINGLE_ROLES else None
    said = Draft(
        f"{role}是{name}", form="possessive", category="relation", exclusive=single, value=name, mention=person, relation="related_to"
    )
    return replace(said, properties={"role": role_of(role), "person": name}), USER


def _thing(found: re.Match[str]) -> Iterator[Found]:
    what, verb, value = found["what"], found["verb"], found["value"].strip()
    if NOT_NAMED.match(what) or (verb in ("是", "在", "为") and re.match(r"(?:很|不错|对的|错的|好|真|最|什么)", value)):
        return
    whose = f"{found['other']}的" if found["other"] else ""
    said = f"{whose}{what}{verb}{value}"
    named = verb.startswith(("叫", "名", "取"))
    if what in ("名字", "姓名", "全名"):
        yield (
            Draft(
                f"名字是{value}",
                form="possessive",
                category="name",
                importance="high",
                exclusive="name",
                value=value,
                properties={"name": value},
            ),
            USER,
        )
        return
    key = exclusive("name of" if named else "attribute", f"{whose}{what}")
    yield (
        Draft(
            said,
            form="whole" if whose else "possessive",
            category="possession" if named else "attribute",
            exclusive=key,
            value=value,
            properties={"thing": what},
        ),
        USER,
    )


def _subject(clause: str, people: People, former: Subject | None) -> tuple[Subject | None, str]:
    """Whom a clause is about, and the rest of it."""
    found = SUBJECT.match(clause)
    if not found:
        return former, clause
    rest = clause[found.end() :]
    if found["i"] or found["we"]:
        return (Subject(label="团队") if found["we"] else USER), rest
    if found["role"]:
        person = people.named(found["role"], found["kin"]) if found["kin"] else people.of_role(found["role"], chinese=True)
        return Subject(person.name, person, user=False), rest
    meant = people.of_name(found["name"]) if found["name"] else people.meant()
    return (Subject(meant.name, meant, user=False) if meant else None), rest


def _predicate(rest: str, message: SourceMessage) -> Iterator[Draft]:
    clause = ADVERB.sub("", rest).strip()
    for pattern, rule in RULES:
        found = pattern.match(clause)
        made = rule(found, clause) if found else None
        if made:
            yield made
            return
    if not clause or re.match(r"^(?:是|很|有点|觉得|认为|知道|同意|明白|没|不)", clause):
        return
    dated = bool(resolve(rest, message.at))
    if dated or EXACT.search(clause) or LIFE.match(clause):
        yield Draft(rest, category="event" if dated else "general", properties={"event": rest} if dated else {})


def _object(text: str) -> str:
    return re.sub(r"(?:了|的|啊|呀|吧)+$", "", text.strip())
