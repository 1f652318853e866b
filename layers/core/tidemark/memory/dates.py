"""Date phrases of English and Chinese, resolved against the moment and zone in which they were said. A bare number is no date."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

Granularity = Literal["day", "week", "month", "season", "year"]

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMBERS = {
    word: value
    for value, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
NUMBERS |= {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "fifteen": 15, "twenty": 20, "thirty": 30}
ORDINALS = {
    word: value
    for value, word in enumerate(("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 1)
}
ORDINALS |= {"last": -1, "latest": -1, "previous": -1}
ZH_DIGITS = {"零": 0, "〇": 0, "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "半": 0}
ZH_WEEKDAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6, "末": 5}
ZH_DAYS = {"大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "今天": 0, "今日": 0, "今早": 0, "今晚": 0, "今晨": 0}
ZH_DAYS |= {"明天": 1, "明日": 1, "明早": 1, "明晚": 1, "后天": 2, "大后天": 3}
ZH_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
EN_DAYS = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2}
STEP = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}

# What makes a phrase without a year point forward.
FUTURE = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|plan\w*|upcoming|next|takes place|begins?|starts?|leaves?|departs?|due|deadline"
    r"|expires?|until|by)\b"
    r"|'ll\b|\b(?:am|are|is|'m|'re)\s+\w+ing\b|将|要|打算|计划|准备|会在|截止|下",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """What a phrase stands for: from `start` to before `end`, and where in the text it stood."""

    start: datetime
    end: datetime
    granularity: Granularity
    phrase: str
    begin: int
    stop: int


@dataclass(frozen=True, slots=True)
class TimeFilter:
    """A span that a query asks for; an open end is None. `session` counts from 1 (-1 is the last) where sessions were not given."""

    start: datetime | None
    end: datetime | None
    phrase: str
    session: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was said, and which way a phrase without a year points."""

    at: datetime
    future: bool

    @property
    def midnight(self) -> datetime:
        return self.at.replace(hour=0, minute=0, second=0, microsecond=0)


Found = tuple[datetime, datetime, Granularity] | None
Handler = Callable[[re.Match[str], Moment], Found]


def _day(moment: datetime) -> Found:
    return moment, moment + timedelta(days=1), "day"


def _week(moment: datetime, offset: int) -> Found:
    monday = moment - timedelta(days=moment.weekday()) + timedelta(weeks=offset)
    return monday, monday + timedelta(weeks=1), "week"


def _shift(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.month - 1 + months, 12)
    return moment.replace(year=moment.year + years, month=month + 1, day=1)


def _month(moment: datetime, offset: int = 0) -> Found:
    first = _shift(moment, offset)
    return first, _shift(first, 1), "month"


def _year(moment: datetime, year: int) -> Found:
    first = moment.replace(year=year, month=1, day=1)
    return first, first.replace(year=year + 1), "year"


def _number(text: str) -> int | None:
    text = text.strip().casefold()
    if text.isdigit():
        return int(text)
    return NUMBERS.get(text, _zh_number(text))


def _zh_number(text: str) -> int | None:
    """Chinese numerals below a hundred."""
    tens, ten, ones = text.partition("十")
    if not ten:
        return ZH_DIGITS.get(text)
    high, low = ZH_DIGITS.get(tens, 1 if not tens else None), ZH_DIGITS.get(ones, 0 if not ones else None)
    return None if high is None or low is None else high * 10 + low


def _pick_year(moment: Moment, month: int, day: int = 1) -> int:
    """The year of a phrase without one: the nearest in the direction in which it points."""
    year = moment.at.year
    if moment.future:
        return year if (month, day) >= (moment.at.month, moment.at.day if day > 1 else 1) else year + 1
    return year if (month, day) <= (moment.at.month, moment.at.day) else year - 1


def _date(moment: Moment, year: str | None, month: int | None, day: str | int) -> Found:
    number = int(day)
    if month is None or not 1 <= month <= 12:
        return None
    chosen = int(year) if year else _pick_year(moment, month, number)
    try:
        return _day(moment.midnight.replace(year=chosen, month=month, day=number))
    except ValueError:
        return None


def _named(name: str) -> int:
    """The number of a month's name or its first three letters."""
    short = name.casefold()[:3]
    return next(number for number, month in enumerate(MONTHS, 1) if month.startswith(short))


def _iso(found: re.Match[str], moment: Moment) -> Found:
    return _date(moment, found["y"], int(found["m"]), found["d"])


def _month_day(found: re.Match[str], moment: Moment) -> Found:
    return _date(moment, found["y"], _named(found["m"]), found["d"])


def _month_only(found: re.Match[str], moment: Moment) -> Found:
    """ "in May", "May 2023", "last May": a month, of the year that is given or implied."""
    month = _named(found["m"])
    step = STEP.get((found["step"] or "").casefold())
    if found["y"]:
        year = int(found["y"])
    elif step is None:
        year = _pick_year(moment, month)
    elif step == 0:
        year = moment.at.year
    else:
        year = _pick_year(Moment(moment.at, step > 0), month)
        year += step if (year, month) == (moment.at.year, moment.at.month) else 0
    return _month(moment.midnight.replace(year=year, month=month, day=1))


def _weekday(found: re.Match[str], moment: Moment) -> Found:
    """ "last Friday" is the latest one before today, "next Friday" that of the next week, a bare one the nearest in its direction."""
    wanted = WEEKDAYS.index(found["w"].casefold())
    step = STEP.get((found["step"] or "").casefold())
    if step == 1:
        return _day(moment.midnight + timedelta(days=7 - moment.at.weekday() + wanted))
    if step == -1 or (step is None and not moment.future):
        back = (moment.at.weekday() - wanted) % 7
        return _day(moment.midnight - timedelta(days=back or (7 if step == -1 else 0)))
    return _day(moment.midnight + timedelta(days=(wanted - moment.at.weekday()) % 7))


def _relative_day(found: re.Match[str], moment: Moment) -> Found:
    word = found[0].casefold().removeprefix("the ")
    offset = EN_DAYS.get(word, 0)
    return _day(moment.midnight + timedelta(days=offset))


def _step_unit(found: re.Match[str], moment: Moment) -> Found:
    step, unit = STEP[found["step"].casefold()], found["u"].casefold()
    if unit == "week":
        return _week(moment.midnight, step)
    if unit == "weekend":
        start = moment.midnight - timedelta(days=moment.at.weekday()) + timedelta(weeks=step, days=5)
        return start, start + timedelta(days=2), "day"
    if unit == "month":
        return _month(moment.midnight, step)
    if unit == "year":
        return _year(moment.midnight, moment.at.year + step)
    return _season(unit, moment, step)


def _season(unit: str, moment: Moment, step: int) -> Found:
    """ "last summer": the latest that has ended; northern seasons of whole months."""
    year = moment.at.year + max(step, 0)
    start = moment.midnight.replace(year=year, month=SEASONS[unit], day=1)
    if step < 0 and _shift(start, 3) > moment.at:
        start = start.replace(year=year - 1)
    return start, _shift(start, 3), "season"


def _offset(moment: Moment, number: int | None, unit: str, sign: int) -> Found:
    """So many units away, as the day, week, month or year that holds that moment."""
    if number is None or number > 500:
        return None
    if unit == "day":
        return _day(moment.midnight + sign * timedelta(days=number))
    if unit == "week":
        return _week(moment.midnight, sign * number)
    if unit == "month":
        return _month(moment.midnight, sign * number)
    return _year(moment.midnight, moment.at.year + sign * number)


def _ago(found: re.Match[str], moment: Moment) -> Found:
    return _offset(moment, _number(found["n"]), found["u"].casefold().rstrip("s"), -1)


def _ahead(found: re.Match[str], moment: Moment) -> Found:
    number, unit = found["n"] or found["n2"], found["u"] or found["u2"]
    return _offset(moment, _number(number), unit.casefold().rstrip("s"), 1)


def _year_only(found: re.Match[str], moment: Moment) -> Found:
    return _year(moment.midnight, int(found["y"]))


def _zh_day(found: re.Match[str], moment: Moment) -> Found:
    return _day(moment.midnight + timedelta(days=ZH_DAYS[found[0]]))


def _zh_week(found: re.Match[str], moment: Moment) -> Found:
    """上周, 下周三, 周五."""
    step = found["step"] or ""
    offset = step.count("下") - step.count("上")
    if not found["w"]:
        return _week(moment.midnight, offset) if step else None
    wanted = ZH_WEEKDAYS[found["w"]]
    start = moment.midnight - timedelta(days=moment.at.weekday()) + timedelta(weeks=offset, days=wanted)
    if found["w"] == "末":
        return start, start + timedelta(days=2), "day"
    if not step and not moment.future and start > moment.midnight:
        start -= timedelta(weeks=1)
    return _day(start)


def _zh_month(found: re.Match[str], moment: Moment) -> Found:
    return _month(moment.midnight, found[0].count("下") - found[0].count("上"))


def _zh_date(found: re.Match[str], moment: Moment) -> Found:
    """2023年5月8日, 去年五月, 5月8号, 今年, 2019年."""
    year = found["y"] or (str(moment.at.year + ZH_YEARS[found["word"]]) if found["word"] else None)
    month = _number(found["m"]) if found["m"] else None
    day = _number(found["d"]) if found["d"] else None
    if month is None:
        return _year(moment.midnight, int(year)) if year else None
    if not 1 <= month <= 12:
        return None
    if day is not None:
        return _date(moment, year, month, day)
    chosen = int(year) if year else _pick_year(moment, month)
    return _month(moment.midnight.replace(year=chosen, month=month, day=1))


def _zh_offset(found: re.Match[str], moment: Moment) -> Found:
    units = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
    return _offset(moment, _number(found["n"]), units[found["u"]], -1 if found["way"].endswith("前") else 1)


MONTH = (
    r"(?P<m>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
# Months that are words of their own need their capital.
FULL = r"(?P<m>January|February|March|April|May|June|July|August|September|October|November|December)"
YEAR = r"(?P<y>(?:19|20)\d\d)"
DAY = r"(?P<d>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
N = r"(?P<n>\d{1,3}|(?:a )?couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty)"
UNIT = r"(?P<u>days?|weeks?|months?|years?)"
ZH_N = r"(?P<n>\d{1,3}|[一二两三四五六七八九十]{1,3})"

# In order of strength: an earlier rule's match hides later ones that it overlaps.
RULES: tuple[tuple[re.Pattern[str], Handler], ...] = (
    (re.compile(r"(?<![\w.-])(?P<y>(?:19|20)\d\d)[-/](?P<m>0?[1-9]|1[0-2])[-/](?P<d>0[1-9]|[12]\d|3[01]|[1-9])(?![\w-])"), _iso),
    (re.compile(rf"\b{DAY}(?: of)? {MONTH}\b\.?,?(?: {YEAR})?\b", re.I), _month_day),
    (re.compile(rf"\b{MONTH}\.? {DAY}\b(?!:)(?:,? {YEAR})?\b", re.I), _month_day),
    (
        re.compile(
            r"(?:(?P<y>(?:19|20)\d\d)年|(?P<word>前年|去年|今年|明年|后年)的?)(?:(?P<m>1[0-2]|0?[1-9]|十[一二]?"
            r"|[一二三四五六七八九])月份?(?:(?P<d>\d{1,2}|[一二三四五六七八九十]{1,3})[日号])?)?"
        ),
        _zh_date,
    ),
    (
        re.compile(
            r"(?P<y>)(?P<word>)(?<![\d一二三四五六七八九十个第])(?P<m>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月(?:份|(?P<d>\d{1,2}"
            r"|[一二三四五六七八九十]{1,3})[日号]|(?![\d]))"
        ),
        _zh_date,
    ),
    (
        re.compile(
            r"\b(?:the )?day (?:before yesterday|after tomorrow)\b|\b(?:yesterday|last night|today|tonight|tomorrow|this"
            r" (?:morning|afternoon|evening))\b",
            re.I,
        ),
        _relative_day,
    ),
    (re.compile(rf"\b{N} {UNIT} ago\b", re.I), _ago),
    (
        re.compile(rf"\b(?:in|within) {N} {UNIT}\b(?! of)|\b{N.replace('<n>', '<n2>')} {UNIT.replace('<u>', '<u2>')} from now\b", re.I),
        _ahead,
    ),
    (
        re.compile(
            r"\b(?P<step>last|past|this|next|coming|previous) (?P<u>weekend|week|month|year|spring|summer|autumn|fall"
            r"|winter)\b",
            re.I,
        ),
        _step_unit,
    ),
    (re.compile(rf"\b(?:(?P<step>last|this|next|coming|past) )?(?P<w>{'|'.join(WEEKDAYS)})\b", re.I), _weekday),
    (re.compile(rf"\b(?P<step>)(?:early |mid-?|late |the end of )?{FULL}(?: of)?,? {YEAR}\b"), _month_only),
    (re.compile(rf"\b(?P<step>[Ll]ast|[Tt]his|[Nn]ext) {FULL}\b(?P<y>)"), _month_only),
    (
        re.compile(
            rf"\b(?:[Ii]n|[Ss]ince|[Uu]ntil|[Dd]uring|[Bb]y|[Bb]efore|[Aa]fter|[Ff]rom|[Bb]etween|and|to|of)(?: early| mid|"
            rf" late|  the end of)? (?P<step>){FULL}\b(?P<y>)(?! \d)"
        ),
        _month_only,
    ),
    (
        re.compile(
            r"\b(?:in|since|until|during|by|before|after|from|back in|of|between) (?:the year )?(?P<y>(?:19"
            r"|20)\d\d)\b(?![-/:\d]|\.\d)",
            re.I,
        ),
        _year_only,
    ),
    (re.compile("|".join(sorted(ZH_DAYS, key=len, reverse=True))), _zh_day),
    (re.compile(r"(?P<step>上上|下下|上|下|这|本)?个?(?:周|星期|礼拜)(?P<w>[一二三四五六日天末])?(?!年|期|围|到)"), _zh_week),
    (re.compile(r"(?:上上个?|上个?|下下个?|下个?|这个?|本)月"), _zh_month),
    (re.compile(rf"{ZH_N}个?(?P<u>天|日|周|星期|礼拜|月|年)(?P<way>之?以?前|之?以?后)"), _zh_offset),
)


# No statement and no query is longer; what stands behind is not read for dates.
LONGEST = 2_000
LONGEST_QUERY = 500
# A rhythm is no date.
RHYTHM = re.compile(r"(?:\b(?:every|each|per|most)|每个?)\s*$", re.IGNORECASE)


def resolve(text: str, at: datetime, future: bool | None = None) -> list[DateSpan]:
    """The date phrases of a text in their order. `future` says where one without a year points; by default the words around decide."""
    text = text[:LONGEST]
    moment = Moment(at, bool(FUTURE.search(text)) if future is None else future)
    found: list[DateSpan] = []
    for pattern, handler in RULES:
        for match in pattern.finditer(text):
            if not match[0] or _taken(match, found) or _rhythm(match, text):
                continue
            span = _handled(handler, match, moment)
            if span:
                found.append(DateSpan(*span, match[0].strip(), match.start(), match.end()))
    return sorted(found, key=lambda span: span.begin)


def _handled(handler: Handler, match: re.Match[str], moment: Moment) -> Found:
    """What the handler makes of a phrase; a date outside the calendar is none."""
    try:
        return handler(match, moment)
    except (ValueError, OverflowError):
        return None


def _taken(match: re.Match[str], found: Sequence[DateSpan]) -> bool:
    return any(match.start() < span.stop and span.begin < match.end() for span in found)


def _rhythm(match: re.Match[str], text: str) -> bool:
    before = RHYTHM.search(text, max(0, match.start() - 8), match.start())
    return before is not None


SESSION = re.compile(
    r"\b(?:(?P<word>first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|latest|previous)|(?P<n>\d{1,3})(?:st|nd|rd|th))"
    r" (?:session|conversation|chat|call)\b|\b(?:session|conversation) (?:number |no\.? ?|#)?(?P<m>\d{1,3})\b"
    r"|第(?P<zh>\d{1,3}|[一二三四五六七八九十]{1,3})[次个场](?:会话|对话|谈话|聊天|会议)|(?P<zhlast>上一?次)(?:会话|对话|谈话|聊天)",
    re.IGNORECASE,
)
PAST_QUERY = re.compile(
    r"\b(?:did|was|were|had|have|has|said|told|talked|discussed|mentioned|happened|went)\b|了|过|说|聊|讨论", re.IGNORECASE
)
OPEN_START = re.compile(r"(?:\b(?:before|until|till|up to|prior to)(?: the)?\s*)$", re.IGNORECASE)
OPEN_END = re.compile(r"(?:\b(?P<word>since|after|from)(?: the)?\s*)$", re.IGNORECASE)
FULL_YEAR = re.compile(r"\d{4}")
RANGE = re.compile(r"^\s*(?:and|to|until|till|through|-|–|到|至|和)?\s*$", re.IGNORECASE)


def time_filter(query: str, now: datetime, sessions: Sequence[tuple[datetime, datetime]] = ()) -> TimeFilter | None:
    """The span or session that a query asks about, else None. `sessions` are the beginnings and ends of the known sessions,"
    " oldest first."""
    query = query[:LONGEST_QUERY]
    session = SESSION.search(query)
    if session:
        return _session(session, sessions)
    spans = [span for span in resolve(query, now, future=False) if _asks_past(span, query, now)]
    if not spans:
        return None
    return _between(query, spans) or _one(query, max(spans, key=_strength))


def _asks_past(span: DateSpan, query: str, now: datetime) -> bool:
    """The present or the future is a time filter only where the query speaks of the past."""
    return span.end <= now or bool(PAST_QUERY.search(query)) or span.granularity in ("month", "year")


def _strength(span: DateSpan) -> tuple[int, int]:
    order: list[Granularity] = ["year", "season", "month", "week", "day"]
    return order.index(span.granularity), len(span.phrase)


def _session(found: re.Match[str], sessions: Sequence[tuple[datetime, datetime]]) -> TimeFilter | None:
    number = ORDINALS.get((found["word"] or "").casefold()) or (-1 if found["zhlast"] else None)
    number = number or _number(found["n"] or found["m"] or found["zh"] or "")
    if not number:
        return None
    if not sessions:
        return TimeFilter(None, None, found[0], number)
    place = number - 1 if number > 0 else number
    if not -len(sessions) <= place < len(sessions):
        return None
    start, end = sessions[place]
    return TimeFilter(start, end, found[0], number)


def _between(query: str, spans: Sequence[DateSpan]) -> TimeFilter | None:
    """Two phrases joined by "and" or "to" behind "between" or "from"."""
    for first, second in pairwise(spans):
        gap = re.sub(r"^(?:and|to)\s", "", query[first.stop : second.begin] or " ")
        opened = re.search(r"(?:\b(?:between|from)\b|从|在)\s*$", query[: first.begin]) or re.match(
            r"(?:between|from)\b", first.phrase, re.I
        )
        joined = RANGE.match(gap) and (opened or re.match(r"\s*(?:到|至|-|–|through|until)", gap))
        if joined and FULL_YEAR.search(second.phrase) and not FULL_YEAR.search(first.phrase) and first.granularity in ("day", "month"):
            year = second.start.year - (first.start.month > second.start.month)
            return TimeFilter(first.start.replace(year=year), second.end, query[first.begin : second.stop].strip())
        if joined and first.start < second.end:
            return TimeFilter(first.start, second.end, query[first.begin : second.stop].strip())
        if joined and first.granularity == second.granularity == "month":
            return TimeFilter(first.start.replace(year=first.start.year - 1), second.end, query[first.begin : second.stop].strip())
    return None


def _one(query: str, span: DateSpan) -> TimeFilter:
    """One phrase, with an open end behind "before" or "since"."""
    before = f"{query[: span.begin]}{span.phrase.split()[0] if span.phrase[:1].isalpha() else ''}"
    if OPEN_START.search(query[: span.begin]) or OPEN_START.search(before):
        return TimeFilter(None, span.start, span.phrase)
    opened = OPEN_END.search(query[: span.begin]) or OPEN_END.search(before)
    if opened:
        return TimeFilter(span.end if opened["word"].casefold() == "after" else span.start, None, span.phrase)
    return TimeFilter(span.start, span.end, span.phrase)
