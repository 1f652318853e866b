"""The English predicate table: what somebody is said to do or be, and what kind of memory that is.

A rule sees the predicate without its subject, adverbs and negation ("live in Rome"), and whether it was negated.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from tidemark.memory.exclusive import SKILL, exclusive
from tidemark.memory.exclusive import preference as preference_of
from tidemark.memory.model import EntityType, Mention, Polarity
from tidemark.memory.names import fold
from tidemark.memory.rules.draft import Draft
from tidemark.memory.rules.grammar import third
from tidemark.memory.rules.people import NAME
from tidemark.text import words

Rule = Callable[[re.Match[str], str, bool], Draft | None]

# Where an object ends: at what only circumstances follow.
TAIL = re.compile(
    r"\s*(?:,|\(|\bbecause\b|\bsince\b|\bso that\b|\bfor (?:the (?:last|past)|over|about|\d+|a|two|three|four|five|ten|many"
    r"|several|years|now)\b|\bnow\b|\bat the moment\b|\bthese days\b|\banymore\b"
    r"|\bany (?:more|longer)\b|\bwith (?:my|his|her|our|their|two|three|a)\b|\b(?:when|while|although|though|whenever|but|and (?:i"
    r"|we|my)|which|who|where|until|after|before|last (?:week|month|year|spring|summer|autumn|fall|winter)|this (?:week|month|year)"
    r"|(?:in|since|on) (?:(?:early|mid|late) )?(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December|(?:19|20)\d\d|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
    r"|today|yesterday|recently|permanently|together|(?:a|two|three|four|five|six|ten|\d+) (?:days?|weeks?|months?|years?) ago)\b).*$",
    re.IGNORECASE,
)
LANGUAGES = words(
    "english chinese mandarin cantonese japanese korean spanish french german italian portuguese russian arabic hindi bengali urdu"
    " turkish dutch swedish norwegian danish finnish polish czech greek hebrew"
    " thai vietnamese indonesian malay tagalog irish welsh gaelic catalan basque galician hungarian romanian ukrainian persian"
    " farsi swahili latin esperanto icelandic croatian serbian slovak bulgarian tamil telugu"
)
JOB_ENDS = re.compile(
    r"(?:er|or|ist|ian|ant|ician|eer|ess|wright|smith|man|woman|master)$|^(?:chef|nurse|cook|clerk|pilot|judge|coach|guard|student"
    r"|intern|baker|vet|surgeon|architect|analyst|scientist|freelance|ceo|cto|cfo|dean|monk|priest"
    r"|maid|model|potter|poet|athlete|diplomat|au pair|apprentice|trainee|midwife|sommelier|barista|consultant|resident"
    r"|undergraduate|graduate|phd|postdoc|retiree|veteran|representative|agent|lead|executive|dba|sre|producer|entrepreneur)$",
    re.IGNORECASE,
)
NO_JOB = words(
    "person lover member user beginner mother father brother sister daughter parent number supporter believer follower speaker"
    " owner player runner reader winner loser foreigner newcomer customer teetotaller smoker drinker"
    " vegetarian listener stranger survivor morning order matter bother partner other either never over after under"
)
CONDITIONS = (
    r"asthma|diabetes|epilepsy|arthritis|anxiety|depression|adhd|autism|migraines?|insomnia|hypertension|high blood pressure|low"
    r" blood pressure|celiac disease|coeliac disease|ibs|eczema|hay fever|tinnitus|a heart condition"
    r"|a bad (?:back|knee)|cancer|anaemia|anemia|sciatica|psoriasis|dyslexia|osteoporosis|glaucoma|a pacemaker|sleep apn(?:o)?ea|a"
    r" slipped disc|(?:an? )?(?:\w+ ){0,3}allerg(?:y|ies)(?: to .+)?|(?:an? )?(?:\w+ ){1,3}intolerance"
)
DIETS = (
    r"vegan|vegetarian|pescatarian|lactose[- ]intolerant|gluten[- ]free|gluten[- ]intolerant|celiac|coeliac|diabetic|pregnant"
    r"|asthmatic|epileptic|colou?r[- ]?blind|dyslexic|deaf|blind|left-handed|autistic|teetotal|kosher|halal|short-sighted"
    r"|nearsighted|anaemic|anemic|immunocompromised"
)
MARITAL = r"married|single|divorced|engaged|widowed|separated|retired|unemployed|self-employed|between jobs"
# What one "has" without possessing it.
NO_THING = re.compile(
    r"\b(?:question|problem|issue|idea|feeling|headache|time|doubt|cold|look|chance|moment|minute|thought|trouble|reason|choice"
    r"|point|plan|need|bug|error|fun|lot|bit|few|couple of (?:questions|minutes)|sense|opinion"
    r"|hunch|favou?r|request|suggestion|concern|clue|nap|shower|break|walk|rest|good|bad|hard|great|blast|day|week|sore|fever"
    r"|access|interest|habit|tendency|preference|crush|hangover|deadline|conversation|discussion|talk|chat)\b",
    re.IGNORECASE,
)
EVENT_THING = re.compile(
    r"\b(?:appointment|meeting|interview|exam|flight|surgery|operation|party|wedding|concert|class|trip"
    r"|presentation|test|call|date|dinner|lunch|reservation|conference|reunion|marathon|race|check-?up|tournament|recital)\b",
    re.IGNORECASE,
)


COUNTED = re.compile(
    r"(?:have|has|have got|has got|own|owns) (?P<number>two|three|four|five|six|seven|eight|nine|ten|\d{1,2})"
    r" (?P<what>[a-z-]+s|children|mice|geese|sheep|fish)$",
    re.IGNORECASE,
)
CLUB = re.compile(
    r"\b(?:group|club|class|course|gym|choir|church|band|league|society|community|forum|session|programme|program"
    r"|party|association|orchestra|chat|server|meeting|call|workshop)\b",
    re.IGNORECASE,
)


def cut(text: str) -> str:
    """An object without the circumstances behind it."""
    return TAIL.sub("", text).strip(" ,.;:!\"'")


def capitals(text: str) -> str | None:
    """The name with which a phrase begins, as written."""
    found = re.match(rf"(?:the |my |our )?({NAME})", text)
    return found[1] if found else None


def _made(verb_phrase: str, negative: bool) -> str:
    """The predicate of the third person, denied where it was: "is not a fan of", "does not like"."""
    if not negative:
        return third(verb_phrase)
    be = re.match(r"(?:am|is|are|was|were) ", verb_phrase)
    return f"is not {verb_phrase[be.end() :]}" if be else f"does not {verb_phrase}"


def preference(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    given = re.sub(r"^(?:eating|drinking|to eat|to drink)\s+", "", found["o"])
    thing = cut(given) or given
    if not thing or re.match(r"(?:it|that|this|you|them|him|her|these|those|how|what|so)\b", thing, re.IGNORECASE):
        return None
    against = negative != bool(found.groupdict().get("bad"))
    said = f"dislikes {thing}" if against and not negative and found["v"].casefold() in {"hate", "hates"} else _made(phrase, negative)
    name = capitals(thing)
    kept = {"object": thing, "attitude": "dislikes" if against else "likes"}
    if said.startswith("dislikes "):
        kept["words"] = third(phrase)
    return Draft(
        phrase=said,
        entity_type="preference",
        category="preference",
        polarity="negative" if against else "positive",
        exclusive=preference_of(thing),
        value="dislikes" if against else "likes",
        mention=Mention(name=name, entity_type="concept") if name and fold(name) == fold(thing) else None,
        relation="prefers" if name and not against else "related_to",
        properties=kept,
    )


def liked(thing: str, phrase: str, *, against: bool = False) -> Draft:
    """A thing that is liked or disliked, in the words in which it was said."""
    attitude = "dislikes" if against else "likes"
    return Draft(
        phrase,
        "preference",
        "preference",
        "negative" if against else "positive",
        exclusive=preference_of(thing),
        value=attitude,
        properties={"object": thing, "attitude": attitude},
    )


def lover(found: re.Match[str], phrase: str, negative: bool) -> Draft:
    """ "am an espresso lover"."""
    return liked(found["o"], _made(phrase, negative), against=negative)


def avoided(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    """ "can't stand", "not a fan of": the words already say the dislike."""
    made = preference(found, phrase, negative)
    return made and replace(
        made,
        phrase=_made(phrase, negative),
        polarity="negative",
        value="dislikes",
        properties={**made.properties, "attitude": "dislikes"},
    )


def intolerance(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    """ "I can't eat gluten": the words themselves deny."""
    thing = cut(found["o"])
    return Draft(
        phrase,
        category="health",
        importance="high",
        polarity="negative",
        exclusive=exclusive("health", thing),
        value="yes",
        properties={"health": thing},
    )


def feeling(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    if re.match(r"(?:how|what|it|that|this|him|her|them)\b", thing, re.IGNORECASE):
        return None
    polarity: Polarity = "negative" if negative else "positive"
    said = _made(phrase, negative)
    return Draft(
        said, "preference", "preference", polarity, exclusive=exclusive(found["v"], thing), value=said, properties={"object": thing}
    )


def diet(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    """ "I don't eat pork", "I don't drink": only the denial tells something lasting."""
    if not negative:
        return None
    thing = cut(found["o"] or "alcohol")
    return Draft(
        f"does not {phrase}",
        "preference",
        "preference",
        "negative",
        exclusive=preference_of(thing),
        value="dislikes",
        properties={"object": thing, "attitude": "avoids"},
    )


def home(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    place = cut(found["o"])
    if not place or re.match(
        r"(?:it|there|here|this|that|next|another|a new|the (?:next|past|moment|future|same))\b", place, re.IGNORECASE
    ):
        return None
    name = capitals(place)
    return Draft(
        phrase=f"does not live in {place}" if negative else third(phrase),
        category="home",
        importance="high",
        polarity="negative" if negative else "positive",
        exclusive="home",
        value=place,
        ends=negative,
        mention=Mention(name=name, entity_type="location") if name else None,
        relation="located_in",
        properties={"home": place},
    )


def origin(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    place = cut(found["o"])
    name = capitals(place)
    if not name or negative:
        return None
    return Draft(
        third(phrase),
        category="origin",
        mention=Mention(name=name, entity_type="location"),
        relation="related_to",
        properties={"origin": place},
    )


def employer(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    given = cut(found["o"])
    org = re.split(r"\s+(?:as|in the|in|on|doing|where)\s+", given, maxsplit=1)[0]
    role = re.search(r"\bas (?:an? |the )?(.+)$", phrase)
    if not org or re.match(r"(?:it|home|night|that|this|them|you|him|her|myself|the (?:moment|weekend))\b", org, re.IGNORECASE):
        return None
    if phrase.split(maxsplit=1)[0] in ("joined", "have", "has", "just") and CLUB.search(org):
        return Draft(third(phrase), category="membership", properties={"member of": org})
    name = capitals(org)
    kept = {"employer": org} | ({"role": cut(role[1])} if role else {})
    return Draft(
        phrase=f"does not work at {org}" if negative else third(phrase),
        category="work",
        importance="high",
        polarity="negative" if negative else "positive",
        exclusive="employer",
        value=org,
        ends=negative,
        mention=Mention(name=org.removeprefix("the ") if name else org, entity_type="organization") if name else None,
        relation="works_at",
        properties=kept,
    )


def quit_job(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    org = cut(found["o"] or "")
    if negative:
        return None
    name = capitals(org)
    return Draft(
        phrase=third(phrase),
        category="work",
        importance="high",
        exclusive="employer",
        value=org or None,
        ends=True,
        mention=Mention(name=org, entity_type="organization") if name else None,
        relation="related_to",
    )


def job(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    role = cut(re.split(r"\s+(?:at|for|in|with|from|by)\s+", found["o"], maxsplit=1)[0])
    head = role.split()[-1] if role else ""
    if re.fullmatch(NAME, role) and not role.isupper():
        return None
    if len(role.split()) > 4 or head.casefold() in NO_JOB or not (JOB_ENDS.search(head) or found.groupdict().get("as")):
        return None
    where = re.search(rf"\b(?:at|for) (?:the )?({NAME})", phrase)
    if where:
        made = Draft(
            third(phrase),
            category="work",
            importance="high",
            exclusive="employer",
            value=where[1],
            properties={"employer": where[1], "role": role},
        )
        return replace(made, mention=Mention(name=where[1], entity_type="organization"), relation="works_at", ends=negative)
    return Draft(
        _made(phrase, negative),
        category="work",
        importance="high",
        exclusive="job",
        value=role,
        ends=negative,
        properties={"role": role},
    )


def own_name(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    name = found["o"]
    if negative or not re.fullmatch(NAME, name):
        return None
    return Draft(f"name is {name}", category="name", importance="high", exclusive="name", value=name, properties={"name": name})


def skill(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    if not thing or re.match(
        r"(?:it|that|this|you|what|why|if|who|him|her|them|about|of|more|some|when|where|we|he|she|they|my"
        r"|be)\b",
        thing,
        re.IGNORECASE,
    ):
        return None
    said = f"does not {phrase}" if negative and not phrase.startswith(("cannot", "can ")) else third(phrase)
    if negative and phrase.startswith("can "):
        said = f"cannot {phrase[4:]}"
    kept = {"skill": thing} | ({"language": thing} if fold(thing.split()[0]) in LANGUAGES else {})
    return Draft(
        said,
        "skill",
        "skill",
        "negative" if negative else "positive",
        exclusive=exclusive(SKILL, thing),
        value="no" if negative else "yes",
        properties=kept,
    )


def known_thing(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    """ "I know Rust": a name or "how to"; knowing people or facts is no skill."""
    thing = cut(found["o"])
    return (
        skill(found, phrase, negative)
        if re.match(r"how to\b|[A-Z]|(?:a (?:bit|little) of|some|basic) [A-Z]", thing) or fold(thing) in LANGUAGES
        else None
    )


def project(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    if negative or not thing or re.match(r"(?:it|that|this|my (?:own|way|laptop)|you)\b", thing, re.IGNORECASE):
        return None
    name = capitals(thing)
    return Draft(
        third(phrase),
        "project",
        "project",
        properties={"project": thing},
        mention=Mention(name=name, entity_type="project") if name else None,
        relation="works_on",
    )


def goal(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    aim = cut(found["o"]) if not re.match(r".*\b(?:in|before|by|until|next|this|on)\b", found["o"]) else found["o"].strip()
    if not aim or re.match(
        r"(?:be able to )?(?:know|ask|understand|(?:see|hear) (?:if|how|what|you|it|that|them|him|her|more)\b|say|talk|tell|thank"
        r"|make sure|go to bed|sleep|die"
        r"|you\b|it\b|that\b|this\b)",
        aim,
        re.IGNORECASE,
    ):
        return None
    return Draft(
        _made(phrase, negative),
        "goal",
        "goal",
        "negative" if negative else "positive",
        exclusive=exclusive("goal", aim),
        value="no" if negative else "yes",
        properties={"goal": aim},
    )


AILMENT = re.compile(
    r"(?:an? )?(?:(?:bad|severe|serious|strong|mild|slight|terrible) )*(?P<to>.+?) (?P<what>allerg|intoleran)(?:y|ies|ce|t)"
    r"|(?:(?:an? )?(?:\w+ly )?)(?P<what2>allerg|intoleran)(?:y|ies|ic|ce|t) (?:to|of) (?P<to2>.+)"
)


def ailment(thing: str) -> str:
    """One form for all that name the same: "allergic to peanuts", "a severe peanut allergy"."""
    found = AILMENT.fullmatch(thing.casefold().replace("-", " "))
    if not found:
        return thing
    return f"{found['what'] or found['what2']}: {(found['to'] or found['to2']).removesuffix('s')}"


def condition(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    said = _made(phrase, negative)
    kept = {"health": thing}
    return Draft(
        said,
        category="health",
        importance="high",
        polarity="negative" if negative else "positive",
        exclusive=exclusive("health", ailment(thing)),
        value="no" if negative else "yes",
        properties=kept,
    )


def marital(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    state = found["o"].casefold()
    said = f"is not {state}" if negative else third(phrase)
    return Draft(
        said,
        category="status",
        exclusive="civil status",
        value=f"not {state}" if negative else state,
        polarity="negative" if negative else "positive",
        properties={"status": state},
    )


def age(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    years = int(found["o"])
    fits = not negative and 0 < years < 120
    return (
        Draft(f"is {years} years old", category="age", exclusive="age", value=str(years), properties={"age": str(years)}) if fits else None
    )


def possession(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    if negative or not thing:
        return None
    if EVENT_THING.search(thing):
        return Draft(third(phrase), category="event", properties={"event": thing})
    if NO_THING.search(thing):
        return None
    named = re.search(rf"^(.*?),?\s+(?:called|named)\s+({NAME})", thing)
    kept = {"thing": named[1], "name": named[2]} if named else {"thing": thing}
    counted = COUNTED.match(phrase)
    # so many of a thing are not other ones than so many before
    key = exclusive("count", counted["what"]) if counted else None
    return Draft(third(phrase), category="possession", exclusive=key, value=counted["number"] if counted else None, properties=kept)


def uses(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    thing = cut(found["o"])
    tool = cut(re.split(r"\s+(?:for|as|to|in|at|with|on)\s+", thing, maxsplit=1)[0])
    if not tool or re.match(r"(?:it|that|this|to|you|them|these|those|up)\b", tool, re.IGNORECASE):
        return None
    kept = {"tool": tool}
    name = capitals(tool)
    return Draft(
        _made(phrase, negative),
        category="tool",
        entity_type="skill",
        polarity="negative" if negative else "positive",
        exclusive=exclusive("uses", tool),
        value="no" if negative else "yes",
        mention=Mention(name=name, entity_type="concept") if name else None,
        relation="uses",
        properties=kept,
    )


def former(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    return None if negative else Draft(third(phrase), category="former", importance="low")


def trait(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    return Draft(
        _made(phrase, negative), category="trait", polarity="negative" if negative else "positive", properties={"trait": found["o"]}
    )


def knows_person(found: re.Match[str], phrase: str, negative: bool) -> Draft | None:
    name = found["o"]
    return (
        None if negative else Draft(third(phrase), mention=Mention(name=name, entity_type="person"), relation="knows", category="relation")
    )


def _rule(pattern: str, rule: Rule) -> tuple[re.Pattern[str], Rule]:
    return re.compile(f"^(?:{pattern})$", re.IGNORECASE), rule


OBJECT = r"(?P<o>.+)"
FAN = r"(?:an? )?(?:\w+ )?(?:fan of|fond of|keen on|into|crazy about|obsessed with|addicted to|passionate about|a lover of)"
# In order: the first rule that gives a draft wins.
RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    _rule(rf"used to (?P<v>\w+) {OBJECT}", former),
    _rule(
        rf"(?:am|is|are|was) called {OBJECT}|go(?:es)? by(?: the name(?: of)?)? (?P<p>.+)",
        lambda f, p, n: own_name(f, p, n) if f["o"] else None,
    ),
    _rule(
        rf"(?:live|lives|living|reside|resides|am living|is living|are living|am based|is based|are based|am staying|have lived"
        rf"|has lived|have been living) (?:here |alone |together |happily )?(?:in|at|on|near|outside) {OBJECT}",
        home,
    ),
    _rule(rf"(?:have |has )?(?:just )?(?:moved|relocated|settled)(?: (?:house|back|home|out|down|over))? (?:to|in|into) {OBJECT}", home),
    _rule(rf"(?:have |has )?(?:just )?(?:moved|relocated)(?: back)? from .+? to {OBJECT}", home),
    _rule(rf"(?:do |did )?(?:move|relocate) to {OBJECT}", home),
    _rule(rf"(?:have |has )?left (?-i:(?P<o>{NAME}))(?: (?:last|in|for|after|this) .+)?", quit_job),
    _rule(
        rf"(?:grew up|was born|were born|was raised|come|comes|am|is|are)(?: originally)? (?:in|from) {OBJECT}",
        lambda f, p, n: origin(f, p, n) if not re.match(r"(?:am|is|are) in", p) else None,
    ),
    _rule(
        rf"(?:work|works|working|am working|is working|are working|worked|have been working|have worked|am employed|is"
        rf" employed)(?: (?:part[- ]time|full[- ]time|remotely|there))? (?P<as>as) {OBJECT}",
        job,
    ),
    _rule(
        rf"(?:work|works|am working|is working|am employed|is employed|am interning|is interning|intern|interns|have been"
        rf" working|have worked|volunteer|volunteers)(?: (?:part[- ]time|full[- ]time|remotely|there))? (?:at|for|by) {OBJECT}",
        employer,
    ),
    _rule(
        rf"(?:have |has )?(?:just )?(?:joined|started (?:working )?at|started a (?:new )?job at|started my (?:new )?job at|got"
        rf" (?:a|the|my) (?:new )?job at|got hired (?:at|by)|took a job at|was hired by|switched jobs? to|switched to a job at)"
        rf" {OBJECT}",
        employer,
    ),
    _rule(
        r"(?:have |has )?(?:just )?(?:quit|left|resigned from|lost|got fired from|was fired from|was laid off from|got laid off"
        r" from) (?:my |his |her |the |their )?(?:old )?(?:job|position|role)(?: (?:at|with) (?P<o>.+))?",
        quit_job,
    ),
    _rule(
        rf"(?:have |has )?(?:just )?(?:quit|resigned from|got fired from|was fired from|was laid off from|got laid off from"
        rf"|retired from) {OBJECT}",
        lambda f, p, n: quit_job(f, p, n) if capitals(f["o"]) or "quit" not in p else None,
    ),
    _rule(rf"(?:work|works|am working|is working|are working|am collaborating|have been working|started working) on {OBJECT}", project),
    _rule(
        rf"(?:am|is|are|have been|has been|started) (?:currently )?(?:building|developing|writing|creating|designing|renovating"
        rf"|restoring|making|launching|prototyping|organi[sz]ing|composing|knitting|researching) {OBJECT}",
        project,
    ),
    _rule(
        rf"(?:am|is|are|was diagnosed as|got) (?:\w+ly )?(?P<o>(?:{DIETS}|allergic to .+|intolerant to .+))(?: (?:for|since)"
        rf" .+)?",
        condition,
    ),
    _rule(rf"(?:am|is|are) an? (?P<o>{DIETS})", condition),
    _rule(
        rf"(?:have|has|suffer from|suffers from|was diagnosed with|have been diagnosed with|got diagnosed with|live with|am"
        rf" being treated for) (?P<o>{CONDITIONS}|type [12] diabetes)",
        condition,
    ),
    _rule(rf"(?:suffer from|suffers from|was diagnosed with|have been diagnosed with|got diagnosed with) {OBJECT}", condition),
    _rule(rf"(?:am|is|are|got) (?P<o>{MARITAL})(?: to .+| in .+| with .+| last .+)?", marital),
    _rule(r"(?:am|is|turned|just turned) (?P<o>\d{1,3})(?: years? old)?(?: now| today| this year)?(?:,? and .+)?", age),
    _rule(rf"(?P<v>cannot stand|cannot bear|cannot tolerate|cannot abide|cannot stomach) {OBJECT}", avoided),
    _rule(
        rf"(?P<v>am sick of|avoid|avoids|try to avoid|stay away from|loathe|loathes|despise|despises|detest|detests|dislike"
        rf"|dislikes|(?P<bad>hate|hates)) {OBJECT}",
        lambda f, p, n: preference(f, p, n) if f["bad"] else avoided(f, p, n),
    ),
    _rule(
        rf"(?P<v>like|likes|liked|love|loves|loved|enjoy|enjoys|enjoyed|adore|adores|prefer|prefers|appreciate|appreciates|fancy"
        rf"|care for|(?:am|is|are) {FAN}) {OBJECT}",
        lambda f, p, n: avoided(f, p, n) if n and f["v"].startswith(("am", "is", "are")) else preference(f, p, n),
    ),
    _rule(rf"(?P<v>would rather) (?:have|get|use|see|drink|eat|take|read) {OBJECT}", preference),
    _rule(rf"cannot (?:eat|drink|tolerate|digest|have(?! (?:it|that|this|you|an?|the|any|everything)\b)) {OBJECT}", intolerance),
    _rule(rf"(?:am|is|are) (?P<v>afraid of|scared of|terrified of|interested in|curious about|proud of) {OBJECT}", feeling),
    _rule(r"(?:eat|eats|drink|drinks|smoke|smokes)(?: (?P<o>.+))?", diet),
    _rule(
        rf"(?:speak|speaks|am fluent in|is fluent in|am learning|is learning|learn|learned|am studying|is studying|study|studies"
        rf"|studied|can speak|program in|code in|write code in|am good at|is good at|am bad at|am experienced in|am proficient in"
        rf"|is proficient in|specialize in|speciali[sz]es? in|major in|play|plays|am taking lessons in|practi[cs]e"
        rf"|practi[cs]es|train in) {OBJECT}",
        skill,
    ),
    _rule(
        r"(?:can|cannot|am able to|is able to) (?P<o>(?:play|speak|cook|swim|drive|ride|code|program|dance|sing|ski|surf|sew|knit"
        r"|weld|juggle|type|read|write"
        r"|draw|paint|fly|sail|dive|climb|skate|bake|repair|build|solder|cycle|whistle|hear|see|walk)\b.*)",
        skill,
    ),
    _rule(rf"(?:know how to|knows how to|learned how to|learnt to|learned to|learnt how to) {OBJECT}", skill),
    _rule(r"(?:teach|teaches) (?P<o>(?!people|him|her|them|us|kids\b|children|others|my|everyone).+)", skill),
    _rule(rf"(?:know|knows) {OBJECT}", known_thing),
    _rule(
        rf"(?:want|wants|would like|would love|plan|plans|am planning|is planning|are planning|hope|hopes|am hoping|intend"
        rf"|intends|aim|aims|am aiming|dream|dreams|am determined|have decided|decided|am saving up|am training|am preparing|am"
        rf" trying|is trying|wish|am looking forward|am going|is going|are going|promised) (?:to|of|for|on) {OBJECT}",
        goal,
    ),
    _rule(rf"(?:am|is|are) (?:planning|preparing|organizing|organising) {OBJECT}", goal),
    _rule(
        rf"(?:use|uses|am using|are using|is using|run on|runs on|switched to|migrated to|rely on|relies on|have been using"
        rf"|deploy to|deploys to|deploy on|host on) {OBJECT}",
        uses,
    ),
    _rule(
        r"(?:have|has|have got|has got|own|owns|keep|keeps|bought|got|adopted|have adopted|have bought|inherited|drive|drives"
        r"|ride|rides|just bought|just got|just adopted|rescued|am the owner of) (?P<o>(?:an?|the|my|his|her|our|two|three|four"
        r"|five|six|several|some|\d+|one) .+)",
        possession,
    ),
    _rule(
        rf"(?:am|is|are|became|was|have become|just became|got promoted to|was promoted to) (?:an? |the |now an? )?{OBJECT}",
        lambda f, p, n: (
            job(f, p, n)
            if re.match(r"(?:am|is|are|became|was|have become|just became|got promoted to|was promoted to) (?:an?|the|\w+)\b", p)
            else None
        ),
    ),
    _rule(
        r"(?:am|is) an? (?:(?:big|huge|great|real|true|avid|keen|passionate|massive|die-?hard) )*(?P<o>(?:[\w-]+ ){0,2}[\w-]+)"
        r" (?:lover|enthusiast|fan|addict|aficionado)",
        lover,
    ),
    _rule(
        r"(?:am|is) an? (?P<o>(?:[\w-]+ ){0,3}(?:person|believer|owl|twin|parent|father|mother|dad|mum|mom"
        r"|widow|widower|immigrant|native|citizen|member|beginner|smoker|non-smoker|drinker|introvert"
        r"|extrovert|christian|muslim|buddhist|hindu|jew|atheist|veteran|survivor|owner|only child))",
        trait,
    ),
    _rule(rf"know(?:s)? (?P<o>{NAME})", knows_person),
)


def draft(phrase: str, negative: bool) -> Draft | None:
    """What the first fitting rule makes of a predicate."""
    for pattern, rule in RULES:
        found = pattern.match(phrase)
        made = rule(found, phrase, negative) if found else None
        if made:
            return made
    return None


def type_of(name: str) -> EntityType:
    """A guess at what a capitalised name stands for, where nothing else tells."""
    if re.search(
        r"\b(?:Inc|Ltd|LLC|GmbH|Corp|Company|Bank|University|College|Hospital|Institute|Labs?|Group|Foundation|School"
        r"|Bakery|Studio|Team)\b",
        name,
    ):
        return "organization"
    return "project" if re.match(r"Project\b", name) else "concept"
