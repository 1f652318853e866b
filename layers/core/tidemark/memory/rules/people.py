"""Who is spoken of: relatives and other persons by role, by name or by pronoun, one person under one name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.memory.model import Mention
from tidemark.memory.names import fold
from tidemark.text import words

KIN = (
    r"(?:step|half-|grand|great-grand|ex-)?(?:mother|father|mom|mum|dad|mommy|daddy|brother|sister|son|daughter|child|kid|baby"
    r"|parents?|mother-in-law|father-in-law|brother-in-law|sister-in-law)"
    r"|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|spouse|cousin|aunt|auntie|uncle|niece|nephew|grandma|grandpa|granny"
    r"|twin(?: sister| brother)?"
    r"|(?:best |close |old |good |childhood )?friend|boss|manager|supervisor|mentor|colleague|coworker|co-worker|teammate"
    r"|neighbou?r|roommate|flatmate|housemate|landlord|landlady|teacher|tutor"
    r"|professor|advisor|doctor|dentist|therapist|trainer|coach|accountant|lawyer|assistant|business partner|co-founder|team lead"
    r"|girlfriend|ex|ex-wife|ex-husband|godmother|godfather"
    r"|(?:older|younger|elder|big|little|eldest|youngest|oldest|middle) (?:brother|sister|son|daughter)"
)
ZH_KIN = (
    "妈妈|母亲|爸爸|父亲|姐姐|妹妹|哥哥|弟弟|老婆|妻子|太太|老公|丈夫|男朋友|女朋友|男友|女友|伴侣|爱人|儿子|女儿|孩子|朋友|闺蜜|同事|老板|上司|经理|邻居|室友|爷爷|奶奶|外公|外婆|姥姥|姥爷"
    "|叔叔|阿姨|舅舅|姑姑|表哥|表弟|表姐|表妹|堂哥|堂弟|堂姐|堂妹|老师|导师|教练|医生|房东|同学|侄子|侄女"
)
# Of these one has one; a newer name replaces the older.
SINGLE_ROLES = words(
    "mother father mom mum dad wife husband partner girlfriend boyfriend fiancé fiancée fiance fiancee spouse boss manager"
    " supervisor landlord"
    " 妈妈 母亲 爸爸 父亲 老婆 妻子 太太 老公 丈夫 男朋友 女朋友 男友 女友 老板 上司 经理 房东"
)
# Different words of one role.
SAME_ROLE = {
    "mom": "mother",
    "mum": "mother",
    "mommy": "mother",
    "dad": "father",
    "daddy": "father",
    "neighbor": "neighbour",
    "coworker": "colleague",
    "co-worker": "colleague",
}
SAME_ROLE |= {"妈妈": "母亲", "爸爸": "父亲", "老婆": "妻子", "太太": "妻子", "老公": "丈夫", "男朋友": "男友", "女朋友": "女友"}
NAME = (
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[A-ZÀ-ÞĀ-ŽА-Я][\w'’-]*(?:\s(?:(?:van|von|de|der|den|da|di|la|le|bin|al"
    r"|el)\s)*[A-ZÀ-ÞĀ-ŽА-Я][\w'’.-]*){0,3}"
)


def role_of(word: str) -> str:
    """The plain role of a word: "best friend" is a friend, "mum" the mother."""
    low = word.casefold()
    return SAME_ROLE.get(low, low)


@dataclass(slots=True)
class People:
    """The persons of one run of messages: the name behind each role, and whom a pronoun means."""

    by_role: dict[str, str] = field(default_factory=dict)
    persons: set[str] = field(default_factory=set)
    last: str | None = None

    @classmethod
    def known(cls, names: Mapping[str, str]) -> "People":
        """From what is remembered: roles with their names, and persons under their own names."""
        roles = {role_of(role): name for role, name in names.items() if fold(role) != fold(name)}
        return cls(roles, {fold(name) for name in names.values()})

    def knows(self, name: str) -> bool:
        return fold(name) in self.persons

    def named(self, role: str, name: str) -> Mention:
        """A person whose role and name were said together."""
        self.by_role[role_of(role)] = name
        self.persons.add(fold(name))
        self.last = name
        return mention(name, role)

    def of_role(self, role: str, chinese: bool = False) -> Mention:
        """The person of a role; the role itself is the name while no other is known."""
        name = self.by_role.get(role_of(role)) or role
        self.by_role[role_of(role)] = self.last = name
        return mention(name, role, chinese)

    def of_name(self, name: str) -> Mention:
        self.persons.add(fold(name))
        self.last = name
        role = next((role for role, known in self.by_role.items() if known == name), None)
        return mention(name, role)

    def meant(self) -> Mention | None:
        """Whom "she" or "he" means: the person named last."""
        return self.of_name(self.last) if self.last else None


def mention(name: str, role: str | None = None, chinese: bool = False) -> Mention:
    said = f"用户的{role}" if role and (chinese or re.search("[\u4e00-\u9fff]", role)) else f"the user's {role}"
    return Mention(name=name, entity_type="person", description=said if role else "")
