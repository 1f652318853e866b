"""English clauses to drafts with their subjects."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tidemark.memory.dates import MONTHS, WEEKDAYS, resolve
from tidemark.memory.exclusive import FAVOURITE, exclusive
from tidemark.memory.model import Importance, Mention, Polarity, SourceMessage
from tidemark.memory.rules import predicates
from tidemark.memory.rules.draft import USER, Draft, Form, Subject
from tidemark.memory.rules.grammar import ADVERB, NEGATION, NO_MORE, PAST, VERBS, clauses, plain, third
from tidemark.memory.rules.people import KIN, NAME, SINGLE_ROLES, People, role_of
from tidemark.text import words

Found = tuple[Draft, Subject]

NOT_A_NAME = words(
    "the this that these those it he she they we you i my our your his her their a an and but so if when what where who why how"
    " there here no yes not all some"
    " every each any many most more in on at to for from with by of as is are was were do does did can will would should today"
    " yesterday tomorrow now then"
    " one two three nobody somebody anybody anyone everybody someone something nothing everything both either neither also just"
    " only even please thanks"
    " hello hi dear sir madam"
) | {*MONTHS, *WEEKDAYS}
BE = r"(?:is|are|was|were)"
POSS = r"(?:my|our|the user's|the team's)"
NP = r"(?:[\w'&#+/.-]+ ){0,6}?[\w'&#+/.-]+"
KIN_NAMED = re.compile(rf"^(?i:my|our) (?P<role>(?i:{KIN}))(?:,)? (?P<name>{NAME})\b,?(?P<rest> .+)$")
KIN_IS = re.compile(
    rf"^(?i:my|our) (?P<role>(?i:{KIN}))(?:'s (?:first )?name)? (?:is|was)(?: called| named)?"
    rf" (?P<name>{NAME})(?P<rest>,? (?:and|who|she|he) .+)?$"
)
IS_KIN = re.compile(rf"^(?P<name>{NAME}) is (?i:my|our) (?P<role>(?i:{KIN}))$")
HAVE_KIN = re.compile(
    rf"^(?i:i|we) (?:have|have got) (?:an?|one) (?P<role>(?i:{KIN}))(?:,? (?:called|named|whose name is)"
    rf" (?P<name>{NAME}))?(?P<rest>,? (?:who|and|in|living|at) .+)?$"
)
HIS_NAME = re.compile(rf"^(?i:her|his|their) name is (?P<name>{NAME})$")
KIN_VP = re.compile(rf"^(?i:my|our) (?P<role>(?i:{KIN}))(?P<rest> .+)$")
KIN_OF = re.compile(
    rf"^(?:(?i:the )?(?P<role>(?i:{KIN})) of (?P<who>{NAME})|(?P<who2>{NAME})'s (?P<role2>(?i:{KIN}))) is (?P<name>{NAME})$"
    rf"|^(?P<name2>{NAME}) is (?P<who3>{NAME})'s (?P<role3>(?i:{KIN}))$"
)
FAVOURITE_FIRST = re.compile(
    rf"^(?:(?i:{POSS}|(?P<who>{NAME})'s)) (?i:(?:all[- ]time |absolute )?(?:favou?rite|fav)) (?P<what>.+?) (?:is|are"
    rf"|has always been|will always be) (?:the |now |still )?(?P<value>.+)$"
)
FAVOURITE_LAST = re.compile(
    rf"^(?P<value>.+?) (?:is|are) (?i:{POSS}) (?i:(?:all[- ]time |absolute )?(?:favou?rite|fav))(?:"
    rf" (?P<what>.+))?$"
)
CALLED = re.compile(rf"^(?i:{POSS}|the) (?P<what>{NP})(?: (?:is|are|was) (?:called|named|nicknamed)|'s name is) (?P<name>.+)$")
MY_NAME = re.compile(
    rf"^(?i:my (?:full |real |first |last )?name is|call me|people call me|everyone calls me|friends call me|you"
    rf" can call me|i go by) (?P<name>{NAME})\b"
)
I_AM_NAME = re.compile(rf"^I am (?P<name>{NAME})(?:$|,? (?:and|from|a|an|the)\b)")
GREETED = re.compile(r"^\W*(?:hi|hello|hey|good \w+|(?:quick |short )?intro(?:duction)?|about me)\b", re.IGNORECASE)
COPULA = re.compile(
    rf"^(?P<np>(?:(?i:my|our|the|his|her|their)|{NAME}'s|[A-Z][\w-]*) (?:{NP})|(?P<bare>{NAME})) (?P<be>is|are|was"
    rf"|were|takes? place|stands?|lies|sits|hangs?|costs?|starts?|begins?|ends?|runs?|answers?|gets?|comes?|leaves?|closes?|opens?"
    rf"|expires?|belongs? to|contains?|holds?) (?P<not>not )?(?P<value>.+)$"
)
LOCATED = re.compile(rf"^(?P<org>{NAME})(?:'s|s') (?P<what>[\w -]+?) (?:is|are) (?:located |based )?(?:in|at|on|near) (?P<place>.+)$")
PERSON_VP = re.compile(rf"^(?P<name>{NAME}) (?P<rest>[a-z].+)$")
PRONOUN_VP = re.compile(r"^(?:he|she) (?P<rest>.+)$", re.IGNORECASE)
ATTRIBUTES = words(
    "name port code number phone address email birthday date deadline budget price version status size height weight age stack"
    " database owner lead manager boss ceo url language framework"
    " capital colour color team password address zip passport plate model brand room floor desk gate id key extension salary rent"
    " username handle nickname anniversary timezone schedule"
    " license licence limit region account goal target maintainer skipper captain president leader host branch title domain"
    " hostname queue bucket table currency timezone editor shell os"
    " slogan mascot codename blood dosage shoe seat berth office headquarters hq location venue breed species doctor dentist"
)
STATES = words(
    "open closed fixed resolved done broken blocked down up merged released deployed finished complete completed pending approved"
    " rejected cancelled canceled delayed ready live online offline"
    " active inactive paused running stopped failing passing green red available unavailable enabled disabled paid unpaid sold"
    " lost found expired full empty overdue paused shipped delivered reopened"
)
EXACT = re.compile(r"\d|\b[A-Z]{2,}\b|(?<=[a-z,] )[A-Z]\w|[/@#]\w|\"")
VAGUE = re.compile(
    r"^(?:nice|great|good|bad|fine|ok|okay|awesome|amazing|fun|cool|beautiful|pleasant|lovely|terrible|awful|boring"
    r"|interesting|important|hard|easy|true|false|right|wrong|so|very|too|really|pretty|quite|as|what|why|how|just|about|like|that"
    r"|because)\b",
    re.IGNORECASE,
)


# What is said to the other side of the conversation is no fact about this one.
TO_YOU = re.compile(r"\b(?:you|your|yours|yourself|y'all|ya)\b", re.IGNORECASE)
# Steps of a life that are worth keeping without their day.
ACHIEVED = re.compile(
    r"(?:have |has )?(?:finished|completed|won|passed|graduated|founded|started|published|launched|bought|sold|adopted|built"
    r"|retired|earned|received|signed up|participated|enrolled|inherited|lost|broke|opened|gave birth)\b",
    re.IGNORECASE,
)
# What one does as a part of one's life, where the predicate table has no place for it.
LIFE_VERB = re.compile(
    r"(?:(?:go|commute|travel|drive|walk|cycle|belong|listen|donate|subscribe|report) (?:to|by|for)\b|(?:work|keep|collect|drive|ride"
    r"|volunteer|attend|visit|cook|bake|paint|draw|write|read|swim|jog|wake|sleep|meditate|train"
    r"|exercise|sing|dance|garden|grow|raise|breed|sell|make|build|repair|fix|knit|sew|brew|coach|lead|manage|rent|wear|take|watch"
    r"|ski|surf|climb|hike|camp|invest|freelance|tutor|run|carry|pay|fish|hunt|support"
    r"|follow|store|park|call|share|own|host|organi[sz]e|maintain|operate|administer|publish|record|study|practi[cs]e|lift|row"
    r"|sail|skate)s?\b)",
    re.IGNORECASE,
)


# "My colour is not blue, it is green" says what is, in the order that the readers know.
CORRECTED = re.compile(
    r"^(?P<what>my [\w' ]{1,60}?) (?P<is>is|was) not (?P<wrong>[^,;.]{1,60}), it(?: is| was|'s) (?P<right>[^,;.]{1,60})(?=\W*$)",
    re.IGNORECASE,
)


# "I used to work at Nokia, now I am at Ericsson": the second half leaves out what the first has said.
MOVED_ON = re.compile(
    r"^(?P<who>I|we) used to (?P<verb>work|live|study|teach|volunteer) (?P<in>at|for|in|with) (?P<old>[^,;.]+)[,;]? (?:but |and )?"
    r"(?:now|today|currently),? (?:I|we)(?: am| are)? (?:at|for|in|with) (?P<new>[^,;.]+)$",
    re.IGNORECASE,
)
MORE_NOW = re.compile(
    r"^(?P<who>I|we) used to have (?P<old>\w+) (?P<what>\w+?)s?[,;]? (?:but |and )?(?:now|today),? (?:I|we) (?:have|own)(?: got)?"
    r" (?P<new>\w+)$",
    re.IGNORECASE,
)
# Parents are spoken of without "my" too.
PARENT = re.compile(r"^(?P<role>Mum|Mom|Mummy|Mommy|Dad|Daddy|Grandma|Grandpa|Granny)(?= [a-z])")


# What the predicate table knows as a verb.
NOUN_IS = (
    (re.compile(r"^my (?:current |present )?employer is (?=\S)", re.IGNORECASE), "I work for "),
    (re.compile(r"^my home is (?=(?:in|at|near|on) )", re.IGNORECASE), "I live "),
)


def _as_verb(clause: str) -> str:
    for noun, verb in NOUN_IS:
        clause = noun.sub(verb, clause)
    return clause


def _written_out(text: str) -> str:
    """A sentence with the words that its second half leaves out."""
    text = CORRECTED.sub(r"\g<what> \g<is> \g<right>, not \g<wrong>", PARENT.sub(r"My \g<role>", text))
    text = MOVED_ON.sub(r"\g<who> used to \g<verb> \g<in> \g<old>; \g<who> \g<verb> \g<in> \g<new>", text)
    return MORE_NOW.sub(r"\g<who> used to have \g<old> \g<what>s; \g<who> have \g<new> \g<what>s", text)


def drafts(sentence: str, message: SourceMessage, people: People) -> Iterator[Found]:
    """Everything that a sentence asserts, clause by clause."""
    greeted = bool(GREETED.match(sentence))
    for clause in map(_as_verb, clauses(_written_out(plain(sentence)))):
        if not TO_YOU.search(clause) and not re.search(r"\bcannot wait\b", clause):
            yield from _clause(clause, message, people, greeted)


def _clause(clause: str, message: SourceMessage, people: People, greeted: bool) -> Iterator[Found]:
    for reader in (_names, _relatives, _favourite, _called):
        found = list(reader(clause, message, people, greeted))
        if found:
            yield from found
            return
    yield from _about_user(clause, message) or _about_person(clause, message, people) or _about_thing(clause, message)


def _names(clause: str, message: SourceMessage, people: People, greeted: bool) -> Iterator[Found]:
    """The user's own name: said as such, or behind a greeting."""
    found = MY_NAME.match(clause)
    if not found and greeted:
        found = I_AM_NAME.match(clause)
    if not found:
        full = I_AM_NAME.match(clause)
        found = full if full and " " in full["name"] and re.match(r"$|,? an? ", clause[full.end("name") :]) else None
    if found and found["name"].split()[0].casefold() not in NOT_A_NAME:
        name = found["name"]
        yield (
            Draft(
                f"name is {name}",
                form="possessive",
                category="name",
                importance="high",
                exclusive="name",
                value=name,
                properties={"name": name},
            ),
            USER,
        )


def _relatives(clause: str, message: SourceMessage, people: People, greeted: bool) -> Iterator[Found]:
    """A relative or friend named, and what else the clause says of the person."""
    of = KIN_OF.match(clause)
    if of:
        yield _relative_of(of)
        return
    theirs = HIS_NAME.match(clause)
    if theirs:
        yield from _named_now(theirs["name"], people)
        return
    found = KIN_IS.match(clause) or IS_KIN.match(clause) or HAVE_KIN.match(clause) or KIN_NAMED.match(clause)
    name = found["name"] if found else None
    if not found or (name and name.casefold() in NOT_A_NAME):
        return
    role = found["role"].casefold()
    if not name:
        yield Draft(f"has a {role}", category="relation", properties={"relation": role}), USER
        return
    person = people.named(role, name)
    yield _role(role, person)
    rest = (found.groupdict().get("rest") or "").strip(" ,")
    rest = re.sub(r"^(?:(?:and|who|she|he)\s+)+", "", rest)
    if rest:
        yield from _told(rest, Subject(name, person, user=False), message)


def _named_now(name: str, people: People) -> Iterator[Found]:
    """ "Her name is Ingrid", of the relative who was spoken of without a name."""
    role = people.last
    if role and people.by_role.get(role_of(role)) == role:
        yield _role(role, people.named(role, name))


def _role(role: str, person: Mention) -> Found:
    single = exclusive("role", role_of(role)) if role_of(role) in SINGLE_ROLES else None
    said = Draft(
        f"{role} is {person.name}",
        form="possessive",
        category="relation",
        exclusive=single,
        value=person.name,
        mention=person,
        relation="related_to",
    )
    return replace(said, properties={"role": role_of(role), "person": person.name}), USER


def _relative_of(found: re.Match[str]) -> Found:
    groups = {key.rstrip("23"): value for key, value in found.groupdict().items() if value}
    who, role, name = groups["who"], groups["role"].casefold(), groups["name"]
    subject = Subject(f"{who}'s", Mention(name=who, entity_type="person"), user=False)
    single = exclusive("role", role_of(role)) if role_of(role) in SINGLE_ROLES else None
    other = Mention(name=name, entity_type="person")
    return Draft(f"{role} is {name}", category="relation", exclusive=single, value=name, mention=other, relation="related_to"), subject


def _favourite(clause: str, message: SourceMessage, people: People, greeted: bool) -> Iterator[Found]:
    found = FAVOURITE_FIRST.match(clause) or FAVOURITE_LAST.match(clause)
    if not found:
        return
    value = predicates.cut(found["value"])
    what = (found["what"] or "").strip(" .!")
    who = found.groupdict().get("who")
    subject = Subject(f"{who}'s", people.of_name(who), user=False) if who else USER
    if value.startswith(("not ", "no longer ")):
        value = value.split(" ", 1)[1].removeprefix("longer ")
        yield (
            Draft(
                f"favourite {what} is not {value}".replace("  ", " "),
                "preference",
                "preference",
                "negative",
                exclusive=exclusive(FAVOURITE, what),
                value=value,
                ends=True,
                form="possessive",
            ),
            subject,
        )
        return
    spelled = re.search(r"favou?rite", clause, re.IGNORECASE)
    word = spelled[0].casefold() if spelled else "favourite"
    if not what:  # of which kind was not said, so others of another kind may be favourites too
        yield replace(predicates.liked(value, f"{word} is {value}"), form="possessive"), subject
        return
    key = exclusive(FAVOURITE, what.replace("color", "colour") if "colour" not in what else what)
    yield (
        Draft(
            f"{word} {what} is {value}",
            "preference",
            "preference",
            exclusive=key,
            value=value,
            properties={f"{word} {what}": value},
            form="possessive",
        ),
        subject,
    )


def _called(clause: str, message: SourceMessage, people: People, greeted: bool) -> Iterator[Found]:
    """ "my boat is called Marisol": a thing and its name."""
    found = CALLED.match(clause)
    name = predicates.cut(found["name"]) if found else ""
    if not found or not name or found["what"].casefold() in NOT_A_NAME:
        return
    what = found["what"]
    mine = re.match(POSS, clause, re.IGNORECASE)
    said = f"{what} is called {name}" if mine else f"the {what} is called {name}"
    category = "possession" if mine else "fact"
    form: Form = "possessive" if mine else "whole"
    kept = {"thing": what, "name": name}
    yield Draft(said, category=category, exclusive=exclusive("name of", what), value=name, properties=kept, form=form), USER


# Verbs whose subject, where it has a name, is a person.
HUMAN_VERB = re.compile(
    r"(?:administers|manages|leads|owns|maintains|handles|reviews|wrote|writes|cooks|met|visited|called|married|teaches|taught"
    r"|studies|studied|runs|founded|bought|sold|graduated|retired"
    r"|leads|coaches|reports to|plays|sings|paints|drives|moved|joined|travels|reads|has (?:a|two|three)|is (?:my|our|the|a|an) )\b"
)
# A circumstance in front of the subject: "yesterday the sensors failed".
PAST_VERBS = "|".join(sorted(PAST))
THING = re.compile(
    rf"^(?P<np>(?:(?:the|our|my|all|both|two|three|some) )?(?:[\w'&#+/.-]+ ){{0,4}}?[\w'&#+/.-]+)"
    rf" (?P<rest>(?:{PAST_VERBS}|\w+ed|will \w+)\b.*)$",
    re.IGNORECASE,
)
MY_THING = re.compile(
    rf"^(?P<who>my|our) (?P<np>(?:[\w'-]+ ){{0,3}}?[\w'-]+) (?P<rest>(?:also |always |never |usually |often "
    rf"|(?:do|does|did|can|will) not )?(?:{VERBS}|call|calls|\w+ed|[a-z]+s)\b.*)$",
    re.IGNORECASE,
)


# What people who say "we" tell of each of themselves, the speaker too.
OWN = frozenset({"home", "status", "origin", "age"})
OPPOSITE = {"likes": "dislikes", "dislikes": "likes", "yes": "no", "no": "yes"}


def _about_user(clause: str, message: SourceMessage) -> list[Found]:
    found = re.match(r"^(?P<who>i|we) (?P<rest>.+)$", clause, re.IGNORECASE)
    if not found:
        return []
    team = found["who"].casefold() == "we"
    made = list(_predicate(found["rest"], USER))
    if not made:
        made = [(said, USER) for said in _generic(ADVERB.sub("", f"{found['rest']} ").strip(), message)]
    return [(said if said.category in OWN else _of_team(said), subject) for said, subject in made] if team else made


def _of_team(said: Draft) -> Draft:
    return replace(said, phrase=f"team {said.phrase}", properties={**said.properties, "who": "we"})


def _about_person(clause: str, message: SourceMessage, people: People) -> list[Found]:
    """A clause about a relative, a named person or whom a pronoun means."""
    found = KIN_VP.match(clause)
    if found:
        role = found["role"].casefold()
        person = people.of_role(role)
        label = person.name if person.name != role else role
        return _told(found["rest"].strip(), Subject(label, person, user=False), message)
    pronoun = PRONOUN_VP.match(clause)
    if pronoun:
        meant = people.meant()
        return _told(pronoun["rest"], Subject(meant.name, meant, user=False), message) if meant else []
    named = PERSON_VP.match(clause)
    if named and named["name"].split()[0].casefold() not in NOT_A_NAME:
        return _told_of_name(named["name"], named["rest"], message, people)
    return []


def _told(rest: str, subject: Subject, message: SourceMessage) -> list[Found]:
    made = list(_predicate(rest, subject))
    return made or [(said, subject) for said in _generic(rest, message, third_person=True)]


# A verb that can belong to one person or thing: third person, past or perfect.
FINITE = re.compile(
    rf"(?:\w+ly |also |still |now |just )?(?:{PAST_VERBS}|is|was|has|had|does|did|no longer|will|\w+ed"
    rf"|[a-z]+s)\b",
    re.IGNORECASE,
)
PERSONAL = frozenset({"preference", "home", "work", "skill", "goal", "health", "age", "status", "possession", "origin", "project"})


def _told_of_name(name: str, rest: str, message: SourceMessage, people: People) -> list[Found]:
    """A capitalised subject is a person where the predicate is one of persons, else a thing of that name.

    A common word has its capital from the beginning of the sentence and names nothing ("Glad to see it", "Running can help").
    """
    made = list(_predicate(rest, USER))
    thing = predicates.type_of(name)
    finite = bool(FINITE.match(rest)) and not name.endswith(("ing", "ly"))
    human = people.knows(name) or (finite and (bool(HUMAN_VERB.match(rest)) or any(said.category in PERSONAL for said, _ in made)))
    person = thing == "concept" and human and name != name.upper()
    if not (person or thing != "concept" or (finite and (" " in name or re.search(r"\d|\w[A-Z]", name)))):
        return []
    subject = Subject(name, people.of_name(name) if person else Mention(name=name, entity_type=thing), user=False)
    if made:
        return [(replace(said, entity_type="fact") if said.category == "tool" and not person else said, subject) for said, _ in made]
    return [] if COPULA.match(f"{name} {rest}") else [(said, subject) for said in _generic(rest, message, third_person=True)]


def _predicate(rest: str, subject: Subject) -> Iterator[Found]:
    """The table's reading of a predicate, its negation taken off first."""
    phrase = ADVERB.sub("", f"{rest} ").strip()
    ended = bool(NO_MORE.search(phrase))
    negated = NEGATION.match(phrase)
    negative = bool(negated) and not phrase.startswith("cannot")
    if negated and negative:
        be = re.match(r"^(?:am|is|are|was|were)\b", phrase)
        can = re.match(r"^can\b", phrase)
        phrase = f"{be[0] + ' ' if be else ''}{'can ' if can else ''}{phrase[negated.end() :]}"
    phrase = re.sub(rf"^(?:have|has) been (?={predicates.DIETS})", "am ", phrase)
    for single in _each(re.sub(r"\s*\b(?:any ?more|any longer)$", "", phrase)):
        said = predicates.draft(single, negative)
        if said and ended and negative:
            held = OPPOSITE.get(said.value or "", said.value)  # what ends is what held before
            said = replace(said, ends=True, value=held, phrase=_no_longer(said.phrase))
        if said:
            yield said, subject


LISTED = re.compile(
    r"^(?P<verb>(?:speak|know|like|love|enjoy|hate|dislike|prefer|use|play|study|adore|detest)s?|(?:am|is) allergic to|can speak)"
    r" (?P<list>[\w+#.-]+(?: [\w+#.-]+)?(?:, [\w+#.-]+(?: [\w+#.-]+)?)*,? (?:and|or) [\w+#.-]+(?: [\w+#.-]+)?)$",
    re.IGNORECASE,
)


def _each(phrase: str) -> list[str]:
    """ "speak French and Italian" as two predicates."""
    found = LISTED.match(phrase)
    if not found:
        return [phrase]
    return [f"{found['verb']} {item.strip()}" for item in re.split(r",? (?:and|or) |, ", found["list"]) if item.strip()]


def _no_longer(phrase: str) -> str:
    bare = re.sub(r"^(?:does not|is not|cannot) ", "", phrase)
    return f"no longer {'is ' if phrase.startswith('is not') else ''}{third(bare) if phrase.startswith('does not') else bare}"


def _about_thing(clause: str, message: SourceMessage) -> list[Found]:
    """Facts about what has a name of its own or belongs to somebody."""
    located = LOCATED.match(clause)
    if located:
        place = predicates.cut(located["place"])
        org = Mention(name=located["org"], entity_type="organization")
        name = predicates.capitals(place)
        where = Mention(name=name, entity_type="location") if name else None
        said = Draft(
            f"{located['what']} is in {place}",
            exclusive=exclusive("place of", located["what"]),
            value=place,
            mention=where,
            relation="located_in",
        )
        return [(said, Subject(f"{located['org']}'s", org, user=False))]
    copula = COPULA.match(clause)
    if copula:
        return _copula(clause, copula)
    mine = MY_THING.match(clause)
    if mine:
        label = mine["np"] if mine["who"].casefold() == "my" else f"team's {mine['np']}"
        return [
            (replace(said, phrase=f"{label} {said.phrase}", form="possessive"), USER)
            for said in _generic(mine["rest"], message, third_person=True)
        ]
    thing = THING.match(clause)
    if thing and resolve(clause, message.at):
        return [(Draft(clause, category="event", properties={"event": clause[:120]}, form="whole"), USER)]
    return []


def _copula(clause: str, found: re.Match[str]) -> list[Found]:
    np, be, value = found["np"], found["be"], predicates.cut(found["value"]) or found["value"]
    first = np.split()[0].casefold()
    if (
        VAGUE.match(value)
        or first in NOT_A_NAME - {"my", "our", "the", "his", "her", "their"}
        or (be in ("was", "were") and not EXACT.search(value))
    ):
        return []
    key, exact = _key(np, value), bool(EXACT.search(f"{np[1:]} {value}")) or first in ("my", "our")
    thing = re.sub(r"^(?:my|our)\s+", "", np, flags=re.IGNORECASE)
    keep = thing if first in ("my", "our") else np
    negative = bool(found["not"])
    said = f"{keep} {be} {'not ' if negative else ''}{found['value']}"
    importance: Importance = "medium" if exact or key else "low"
    form: Form = "possessive" if first in ("my", "our") else "whole"
    made = Draft(
        said,
        form=form,
        category="attribute",
        importance=importance,
        exclusive=key,
        value=f"not {value}" if negative else value,
        polarity="negative" if negative else "positive",
    )
    mention = _possessor(np)
    subject = Subject("", mention, user=False) if mention else USER
    return [(made, subject)]


def _key(np: str, value: str) -> str | None:
    """What is exclusive: a thing's state, and an attribute of which it has one."""
    thing = re.sub(r"^(?:my|our|the|a)\s+", "", np, flags=re.IGNORECASE)
    if value.split(maxsplit=1)[0].casefold() in STATES and len(value.split()) <= 3:
        return exclusive("status", thing)
    head = re.split(r"\s+(?:of|for|in|on|at)\s+", thing, maxsplit=1)[0].split()[-1].casefold().removesuffix("'s")
    return exclusive("attribute", thing) if head in ATTRIBUTES else None


def _possessor(np: str) -> Mention | None:
    """Who or what a noun phrase names: "Project Heron", "Acme's office"."""
    found = re.match(rf"^({NAME})(?:'s)?(?: |$)", np)
    if not found or found[1].split()[0].casefold() in NOT_A_NAME:
        return None
    return Mention(name=found[1].removesuffix("'s"), entity_type=predicates.type_of(found[1]))


def _generic(rest: str, message: SourceMessage, third_person: bool = False) -> list[Draft]:
    """Any other predicate: an event where it has a date, else worth keeping where it holds something exact."""
    phrase = rest.strip()
    verb = phrase.split()[0].casefold()
    if verb in ("am", "is", "are", "was", "were", "be") and VAGUE.match(phrase.split(" ", 1)[-1]):
        return []
    spans = resolve(phrase, message.at)
    said = phrase if third_person else _made_third(phrase)
    negative = bool(NEGATION.match(phrase))
    polarity: Polarity = "negative" if negative else "positive"
    if spans and not negative:
        return [Draft(said, category="event", properties={"event": phrase[:120]})]
    if ACHIEVED.match(phrase) or re.match(r"(?:have|has) been \w+ing\b", phrase):
        return [Draft(said, category="experience")]
    past = verb in PAST or verb.endswith("ed")
    if (
        not past
        and not negative
        and not re.match(
            r"(?:am|is|are|will|can|cannot|could|may|must|should|shall|need|have|has|had"
            r"|been|get|gets)\b",
            phrase,
        )
    ):
        lasting = third_person or negative or bool(LIFE_VERB.match(phrase)) or bool(EXACT.search(phrase))
        return [Draft(said, category="habit", polarity=polarity, importance="medium" if lasting else "low")]
    return [Draft(said, category="general", importance="medium" if EXACT.search(phrase) else "low", polarity=polarity)]


def _made_third(phrase: str) -> str:
    negated = re.match(r"^(?:do|does) not (.+)$", phrase, re.IGNORECASE)
    if negated:
        return f"does not {negated[1]}"
    return third(phrase)
