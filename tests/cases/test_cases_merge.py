"""Section A of the reports: dedupe, merge, entity resolution. Each test names its case."""

from typing import Any

import pytest

from tests.support.world import Client, World


def remember(client: Client, text: str) -> list[Any]:
    found: list[Any] = client.post("/v1/memories/remember", {"text": text})["entities"]
    return found


def current(client: Client, query: str) -> str:
    return " / ".join(item["entity"]["name"] for item in client.search(query)["items"])


def entity(client: Client, name: str, entity_type: str = "concept", **more: Any) -> Any:
    return client.post("/v1/memories/entities", {"name": name, "entity_type": entity_type, **more})


def relate(client: Client, source: Any, target: Any, relation_type: str = "related_to") -> Any:
    body = {"source_entity_id": source["id"], "target_entity_id": target["id"], "relation_type": relation_type}
    return client.post("/v1/memories/relations", body)


def test_case_001_the_same_text_twice_is_one_memory(ada: Client) -> None:
    first, again = (remember(ada, "Dogs descend from wolves.") for _ in range(2))
    assert [one["id"] for one in first] == [one["id"] for one in again]
    assert len(ada.memories()) == len({one["name"] for one in ada.memories()})
    for one in first:
        actions = [entry["action"] for entry in ada.walk(f"/v1/memories/entities/{one['id']}/history")]
        assert "deleted" not in actions


def test_case_002_a_new_name_closes_the_old_one(aws: World, ada: Client) -> None:
    remember(ada, "My name is Ada One.")
    remember(ada, "My name is Ada Two.")
    aws.index()
    found = current(ada, "What is my name?")
    assert "Ada Two" in found
    assert "Ada One" not in found
    [old] = [one for one in ada.memories() if "Ada One" in one["name"] and one["valid_to"]]
    assert "superseded" in [entry["action"] for entry in ada.walk(f"/v1/memories/entities/{old['id']}/history")]


def test_case_003_a_contradiction_stores_the_new_fact(aws: World, ada: Client) -> None:
    remember(ada, "I love spicy food.")
    remember(ada, "I hate spicy food.")
    aws.index()
    kinds = {one["polarity"] for one in ada.memories() if "spicy" in one["name"] and one["valid_to"] is None}
    assert "negative" in kinds


def test_case_005_nothing_durable_comes_of_small_talk(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    for words in ("What is your name?", "run echo hello", "I work at Acme.", "I work at Acme."):
        ada.say(conversation, words)
    aws.learn()
    statements = [one for one in ada.memories() if one["entity_type"] == "fact"]
    assert len(statements) == 1
    assert "Acme" in statements[0]["name"]


def test_case_006_a_preference_in_other_words_is_one_memory(aws: World, ada: Client) -> None:
    remember(ada, "I like espresso.")
    [again] = [one for one in remember(ada, "I really enjoy espresso.") if one["entity_type"] == "preference"]
    ada.say(ada.conversation(), "I love espresso.")
    aws.learn()
    [kept] = [one for one in ada.memories(entity_type="preference") if "espresso" in one["name"]]
    assert (kept["id"], kept["name"], kept["valid_to"]) == (again["id"], "likes espresso", None)
    assert len(kept["aliases"]) == 2
    assert len(kept["provenance"]) == 3
    remember(ada, "I hate espresso.")
    [now_holds] = [one for one in ada.memories(entity_type="preference") if "espresso" in one["name"] and one["valid_to"] is None]
    assert now_holds["polarity"] == "negative"


SAME = (
    ("I like espresso.", "Espresso is my favourite coffee."),
    ("Espresso is my favourite coffee.", "I like espresso."),
    ("I like espresso.", "My favourite coffee is espresso."),
    ("I like espresso.", "Espresso is my favorite."),
    ("I like espresso.", "I am a big espresso fan."),
    ("I like dogs.", "I am a dog lover."),
    ("I live in Rome.", "My home is in Rome."),
    ("I live in Rome.", "I moved to Rome in May 2024."),
    ("I work at Acme.", "My employer is Acme."),
    ("I am allergic to peanuts.", "I have a severe peanut allergy."),
    ("I have asthma.", "I suffer from asthma."),
    ("I hate mushrooms.", "I can't stand mushrooms."),
    ("I use Neovim.", "I switched to Neovim."),
    ("我喜欢咖啡。", "咖啡是我最喜欢的饮料。"),
    ("咖啡是我的最爱。", "我喜欢咖啡。"),
    ("我住在上海。", "我家在上海。"),
    ("我在阿里巴巴工作。", "我就职于阿里巴巴。"),
    ("我对花生过敏。", "我有花生过敏症。"),
)
DIFFERENT = (
    ("I like espresso.", "My favourite coffee is cappuccino."),
    ("I like coffee.", "I like espresso."),
    ("Espresso is my favourite.", "Jazz is my favourite."),
    ("I play guitar.", "I teach guitar."),
    ("I live in Rome.", "I work in Rome."),
    ("I am allergic to peanuts.", "I am allergic to cats."),
    ("Espresso is my favourite coffee.", "Ruth likes espresso."),
    ("我喜欢咖啡。", "我最喜欢的饮料是茶。"),
)


def statements(client: Client) -> list[Any]:
    """What is said, not what it names, and holds."""
    return [one for one in client.memories() if one["subject"] and one["valid_to"] is None]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_case_006_a_paraphrase_is_one_memory(ada: Client, first: str, second: str) -> None:
    remember(ada, first)
    remember(ada, second)
    [kept] = statements(ada)
    assert [source["quote"] for source in kept["provenance"]] == [first, second]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_case_006_what_is_not_the_same_stays_two(ada: Client, first: str, second: str) -> None:
    remember(ada, first)
    remember(ada, second)
    assert len(statements(ada)) == 2


@pytest.mark.parametrize(
    "order", [("I like espresso.", "Espresso is my favourite coffee."), ("Espresso is my favourite coffee.", "I like espresso.")]
)
def test_case_006_another_favourite_leaves_the_liking(aws: World, ada: Client, order: tuple[str, str]) -> None:
    for text in (*order, order[1]):
        remember(ada, text)
    [one] = statements(ada)
    assert one["name"] == "likes espresso"
    assert "favourite coffee is Espresso" in one["aliases"]
    remember(ada, "My favourite coffee is cappuccino.")
    holding = {held["name"]: held for held in statements(ada)}
    assert set(holding) == {"likes espresso", "favourite coffee is cappuccino"}
    liked = holding["likes espresso"]
    assert liked["id"] == one["id"]
    assert "favourite" not in str([liked["aliases"], liked["description"]])
    [past] = [held for held in ada.memories() if held["name"] == "favourite coffee is Espresso"]
    assert past["valid_to"] == holding["favourite coffee is cappuccino"]["valid_from"]
    aws.index()
    assert "espresso" not in current(ada, "What is my favourite coffee?").casefold().replace("likes espresso", "")

    remember(ada, "I hate cappuccino.")
    assert {held["name"] for held in statements(ada)} == {"likes espresso", "dislikes cappuccino"}
    remember(ada, "Cappuccino is my favourite coffee.")
    assert {held["name"].casefold() for held in statements(ada)} == {"likes espresso", "favourite coffee is cappuccino"}


def test_case_006_a_restatement_with_an_earlier_beginning_moves_it(ada: Client) -> None:
    remember(ada, "I live in Rome.")
    remember(ada, "I moved to Rome in May 2024.")
    [home] = statements(ada)
    assert home["valid_from"].startswith("2024-05-01")
    assert "moved to Rome in May 2024" in home["description"]


def test_case_007_unrelated_facts_never_chain_through_a_third(ada: Client) -> None:
    for text in ("I am a vegetarian.", "I am a vegetarian and I play basketball.", "I play basketball."):
        remember(ada, text)
    assert all(not ("vegetarian" in one["name"] and "basketball" in one["name"]) for one in remember(ada, "I play basketball."))
    assert all(len(one["description"]) < 500 for one in ada.memories())


def test_case_008_a_fact_of_two_sessions_is_one_node(aws: World, ada: Client) -> None:
    for _ in range(2):
        ada.say(ada.conversation(), "I work at Acme.")
        aws.learn()
    [fact] = [one for one in ada.memories() if one["entity_type"] == "fact" and "Acme" in one["name"]]
    assert len({one["conversation_id"] for one in fact["provenance"]}) == 2


def test_case_010_a_short_acronym_is_one_entity(ada: Client) -> None:
    ids = {entity(ada, name, "organization")["id"] for name in ("DGXA", "dgxa", " DGXA ", "ＤＧＸＡ")}
    assert len(ids) == 1


def test_case_011_additive_facts_coexist(aws: World, ada: Client) -> None:
    remember(ada, "My colleague Petra works at Acme as an auditor.")
    remember(ada, "My colleague Petra administers Acme's code host.")
    aws.index()
    assert all(one["valid_to"] is None for one in ada.memories())


def test_case_013_a_partner_is_one_person(aws: World, ada: Client) -> None:
    remember(ada, "My partner is Mira.")
    remember(ada, "My partner likes tea.")
    people = [one["name"] for one in ada.memories(entity_type="person")]
    assert people == ["Mira"]


def test_case_014_a_relation_is_never_re_pointed(ada: Client) -> None:
    a, b, c, d = (entity(ada, name) for name in "abcd")
    first = relate(ada, a, b)
    body = {"source_entity_id": c["id"], "target_entity_id": d["id"], "relation_type": "related_to", "id": first["id"]}
    assert ada.refused("POST", "/v1/memories/relations", body) == (422, "validation_failed")
    relate(ada, c, d)
    [kept] = ada.get(f"/v1/memories/entities/{a['id']}")["outgoing_relations"]
    assert (kept["id"], kept["target_entity_id"]) == (first["id"], b["id"])


def test_case_016_a_second_put_is_a_second_version(ada: Client) -> None:
    first = entity(ada, "channel", description="email")
    again = entity(ada, "channel", description="chat")
    assert (again["id"], again["version"]) == (first["id"], 2)
    assert len(ada.memories()) == 1


def test_case_017_a_correction_leaves_only_the_corrected(ada: Client) -> None:
    made = entity(ada, "stack", description="Postgres")
    ada.put(f"/v1/memories/entities/{made['id']}", {"description": "MySQL"})
    assert [one["description"] for one in ada.memories()] == ["MySQL"]
    changes = [change for entry in ada.walk(f"/v1/memories/entities/{made['id']}/history") for change in entry["changes"]]
    assert {"field": "description", "old": "Postgres", "new": "MySQL"} in changes


def test_case_019_a_description_says_a_fact_once(ada: Client) -> None:
    for _ in range(2):
        made = entity(ada, "Acme", "organization", description="makes anvils")
    assert made["description"] == "makes anvils"


def test_case_020_what_is_no_longer_so_is_closed_by_hand(aws: World, ada: Client) -> None:
    made = entity(ada, "bug 7 is open", "fact")
    aws.index()
    ada.put(f"/v1/memories/entities/{made['id']}", {"valid_to": "2026-01-01T00:00:00Z"})
    assert all(item["entity"]["id"] != made["id"] for item in ada.search("bug 7")["items"])
    assert made["id"] in [one["id"] for one in ada.memories()]
