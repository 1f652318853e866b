"""Whether questions about a time are answered from that time: `python tests/bench/time_questions.py DATA`.

Each session of the LoCoMo development conversations is asked about in many forms of English and Chinese, with and without a year, relative
and by its number, at random moments behind it. A question counts where its filter leaves exactly the messages of the asked span, worked
out here by plain arithmetic on dates and not by the parser under test.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.memory.dates import time_filter

from tests.bench.locomo import locomo_documents

Span = tuple[datetime, datetime]
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ZH = ("零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
ASKING = {
    "en": ("What did we discuss {}?", "What was said {}", "Tell me what happened {}.", "{}, what did we talk about?"),
    "zh": ("{}我们聊了什么？", "我们{}说过什么", "{}发生了什么事"),
}


def day(at: datetime) -> Span:
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=1)


def week(at: datetime) -> Span:
    start = day(at)[0] - timedelta(days=at.weekday())
    return start, start + timedelta(days=7)


def month(year: int, number: int) -> Span:
    return datetime(year, number, 1, tzinfo=UTC), datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)


def year(number: int) -> Span:
    return datetime(number, 1, 1, tzinfo=UTC), datetime(number + 1, 1, 1, tzinfo=UTC)


Form = Callable[[datetime, datetime], tuple[str, Span] | None]


def months_between(then: datetime, now: datetime) -> int:
    return (now.year - then.year) * 12 + now.month - then.month


def forms() -> dict[str, dict[str, Form]]:
    """Phrase and asked span of a session's day `t` for a question at `now`; None where the form cannot say it."""

    def named(t: datetime) -> str:
        return MONTHS[t.month - 1]

    def within(limit: int, phrase: str, span: Span, count: int) -> tuple[str, Span] | None:
        return (phrase, span) if 1 < count <= limit else None

    def recent(t: datetime, now: datetime) -> bool:
        return t.year == now.year or (now.year - t.year == 1 and (t.month, t.day) > (now.month, now.day))

    return {
        "en": {
            "on 8 May 2023": lambda t, _: (f"on {t.day} {named(t)} {t.year}", day(t)),
            "on May 8th, 2023": lambda t, _: (f"on {named(t)} {t.day}, {t.year}", day(t)),
            "on 2023-05-08": lambda t, _: (f"on {t:%Y-%m-%d}", day(t)),
            "on 8 May": lambda t, now: (f"on {t.day} {named(t)}", day(t)) if recent(t, now) else None,
            "in May 2023": lambda t, _: (f"in {named(t)} {t.year}", month(t.year, t.month)),
            "in 2023": lambda t, _: (f"in {t.year}", year(t.year)),
            "n days ago": lambda t, now: (
                within(12, f"{NUMBERS[min(12, (now - t).days)]} days ago", day(t), (day(now)[0] - day(t)[0]).days)
                if (now - t).days == (day(now)[0] - day(t)[0]).days
                else None
            ),
            "n months ago": lambda t, now: within(
                12, f"{NUMBERS[min(12, months_between(t, now))]} months ago", month(t.year, t.month), months_between(t, now)
            ),
            "last week": lambda t, now: ("last week", week(t)) if week(t)[1] == week(now)[0] else None,
            "yesterday": lambda t, now: ("yesterday", day(t)) if day(t)[1] == day(now)[0] else None,
            "last Friday": lambda t, now: (f"last {DAYS[t.weekday()]}", day(t)) if 1 <= (day(now)[0] - day(t)[0]).days <= 7 else None,
            "last year": lambda t, now: ("last year", year(t.year)) if t.year == now.year - 1 else None,
            "between March and June 2023": lambda t, _: (
                (
                    f"between {MONTHS[t.month - 2]} and {MONTHS[t.month]} {t.year}",
                    (month(t.year, t.month - 1)[0], month(t.year, t.month + 1)[1]),
                )
                if 1 < t.month < 12
                else None
            ),
        },
        "zh": {
            "2023年5月8日": lambda t, _: (f"{t.year}年{t.month}月{t.day}日", day(t)),
            "2023年五月": lambda t, _: (f"{t.year}年{ZH[t.month]}月", month(t.year, t.month)),
            "5月8号": lambda t, now: (f"{t.month}月{t.day}号", day(t)) if recent(t, now) else None,
            "去年五月": lambda t, now: (f"去年{ZH[t.month]}月", month(t.year, t.month)) if t.year == now.year - 1 else None,
            "上周": lambda t, now: ("上周", week(t)) if week(t)[1] == week(now)[0] else None,
            "昨天": lambda t, now: ("昨天", day(t)) if day(t)[1] == day(now)[0] else None,
            "三个月前": lambda t, now: within(
                12, f"{ZH[min(12, months_between(t, now))]}个月前", month(t.year, t.month), months_between(t, now)
            ),
            "去年": lambda t, now: ("去年", year(t.year)) if t.year == now.year - 1 else None,
        },
    }


def moments(t: datetime, chosen: random.Random) -> Iterator[datetime]:
    """When one asks: the next days, weeks, months and years."""
    for days in (1, chosen.randint(2, 6), chosen.randint(7, 13), chosen.randint(20, 60), chosen.randint(90, 330), chosen.randint(370, 700)):
        yield t + timedelta(days=days, hours=chosen.randint(-5, 5))


def asked(sessions: dict[int, datetime], chosen: random.Random) -> Iterator[tuple[str, str, datetime, Span | int]]:
    for number, t in sessions.items():
        for now in moments(t, chosen):
            for language, found in forms().items():
                for name, form in found.items():
                    said = form(t, now)
                    if said:
                        yield name, chosen.choice(ASKING[language]).format(said[0]), now, said[1]
            if number < len(ORDINALS):
                yield "in our third session", f"What did we discuss in our {ORDINALS[number]} session?", now, number
                yield "第三次对话", f"我们第{ZH[number]}次对话聊了什么？", now, number


def right(question: str, now: datetime, wanted: Span | int, times: list[tuple[int, datetime]]) -> bool:
    """Whether the filter leaves the same messages as the asked span."""
    found = time_filter(question, now)
    if found is None:
        return False
    if isinstance(wanted, int):
        return found.session == wanted
    mine = [(found.start is None or found.start <= at) and (found.end is None or at < found.end) for _, at in times]
    return mine == [wanted[0] <= at < wanted[1] for _, at in times]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    needed = parser.parse_args().data / "locomo/locomo_dev.json"
    if not needed.exists():
        print(f"skipped: {needed} is absent; the data is not part of this repository")
        return 0
    chosen, score, missed = random.Random(7), defaultdict[str, list[bool]](list), list[str]()
    for number, sample in enumerate(json.loads(needed.read_text("utf-8"))):
        times = [(one.session, one.occurred_at) for one in locomo_documents(str(number), sample["conversation"])]
        for name, question, now, wanted in asked(dict(times), chosen):
            score[name].append(right(question, now, wanted, times))
            if not score[name][-1]:
                missed.append(f"{question} (asked {now:%Y-%m-%d}, wanted {wanted})")
    for name, results in score.items():
        print(f"{name:30} {100 * sum(results) / len(results):6.1f} of {len(results)}")
    every = [one for results in score.values() for one in results]
    print(f"{'all':30} {100 * sum(every) / len(every):6.1f} of {len(every)}", *missed[:12], sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
