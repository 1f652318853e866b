"""My Memories: finding, drawing, changing and deleting what is remembered."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.console import Console, Tenant

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def ids(tenant: Tenant) -> dict[str, str]:
    """Ada's memories by name, three of them joined."""
    made = {
        "Heliotrope": tenant.memory("Heliotrope", "project", description="A dashboard of the tides", properties={"status": "active"}),
        "Olaf": tenant.memory("Olaf", "person", description="Designs the dashboard"),
        "Bergen": tenant.memory("Bergen", "location"),
        "likes green tea": tenant.memory("likes green tea", "preference"),
    }
    tenant.relation(made["Olaf"], made["Heliotrope"], "works_on")
    tenant.relation(made["Heliotrope"], made["Bergen"], "located_in")
    return made


@pytest.fixture
def memories(console: Console, tenant: Tenant, ids: dict[str, str]) -> Console:
    console.sign_in(tenant.key, "ada")
    console.drawn(*ids)
    return console


# finding
def test_words_are_found_in_name_and_description_and_in_list_and_graph_alike(memories: Console) -> None:
    memories.page.get_by_label("Keyword").fill("DASHBOARD")
    expect(memories.rows()).to_have_text(["Olaf", "Heliotrope"])
    memories.drawn("Olaf", "Heliotrope")
    memories.page.get_by_label("Keyword").fill("nothing like it")
    expect(memories.page.get_by_text("No memory matches")).to_be_visible()


def test_one_or_several_types_are_chosen(memories: Console) -> None:
    memories.button("person").click()
    expect(memories.rows()).to_have_text(["Olaf"])
    memories.button("location").click()
    expect(memories.rows()).to_have_text(["Bergen", "Olaf"])
    memories.drawn("Bergen", "Olaf")
    memories.button("All types").click()
    expect(memories.rows()).to_have_count(4)


def test_a_question_is_answered_with_scores_or_with_nothing(memories: Console, tenant: Tenant) -> None:
    tenant.call("POST", "/memories/remember", {"text": "My sister Mira lives in Bergen."})
    memories.button("Meaning").click()
    memories.page.get_by_label("Question").fill("Where does my sister live?")
    memories.button("Search").click()
    expect(memories.rows().first).to_contain_text(re.compile("Mira|sister"))
    expect(memories.page.locator(".score").first).to_contain_text(re.compile(r"0\.\d\d · likeness 0\.\d\d · recency [01]\.\d\d · by "))
    memories.page.get_by_label("Question").fill("xqzv 77-KK-1209")
    memories.button("Search").click()
    expect(memories.page.get_by_text("Nothing in this memory answers that")).to_be_visible()


# drawing
def test_three_layouts_arrange_the_same_memories_differently(memories: Console) -> None:
    placed = [memories.layout(name) for name in ("Grid", "Hierarchical", "Radial")]
    assert len({tuple(sorted(one)) for one in placed}) == 1
    tree = placed[1]
    assert tree["Olaf"]["y"] < tree["Heliotrope"]["y"] < tree["Bergen"]["y"], "relations point downwards"
    assert placed[0] != placed[1] != placed[2] != placed[0]


def test_zoom_and_fit_view(memories: Console) -> None:
    fitted = memories.zoom()
    memories.button("Zoom in").click()
    assert memories.zoom() > fitted
    memories.button("Zoom out").click()
    memories.button("Zoom out").click()
    assert memories.zoom() < fitted
    memories.button("Fit View").click()
    assert memories.zoom() == pytest.approx(fitted, rel=0.01)


def test_a_graph_that_is_cut_says_so_and_the_neighbours_of_one_memory_are_whole(console: Console, tenant: Tenant) -> None:
    hub, other = tenant.memory("hub", "concept"), tenant.memory("spoke", "concept")
    tenant.relation(hub, other)
    for number in range(99):
        tenant.memory(f"note {number}")
    console.sign_in(tenant.key, "ada")
    expect(console.page.get_by_text("Truncated: the graph shows a part only")).to_be_visible()
    expect(console.page.get_by_text("101 memories")).to_be_visible()
    expect(console.page.get_by_text("Page 1 of 3")).to_be_visible()
    console.page.get_by_label("Keyword").fill("hub")
    console.open_memory("hub")
    console.button("Show neighbours").click()
    console.drawn("hub", "spoke")
    expect(console.page.get_by_text("Truncated")).to_have_count(0)


def test_a_memory_is_opened_from_the_graph(memories: Console) -> None:
    place = memories.layout("Grid")["Olaf"]
    memories.page.mouse.click(place["x"], place["y"])
    expect(memories.drawer.get_by_role("heading", name="Olaf")).to_be_visible()


# one memory
def test_the_drawer_tells_what_is_known_of_a_memory_and_from_whom(console: Console, tenant: Tenant) -> None:
    conversation = tenant.call("POST", "/conversations", {"external_subject_id": "ada"})["id"]
    tenant.call("POST", f"/conversations/{conversation}/messages", {"content": "Remember this: I don't eat peanuts since 2024."})
    console.sign_in(tenant.key, "ada")
    console.rows().filter(has_text="peanuts").click()
    drawer = console.drawer
    expect(drawer).to_contain_text("negative: it is not so")
    expect(drawer).to_contain_text("I don't eat peanuts since 2024.")
    expect(drawer).to_contain_text("asked to be remembered")
    expect(drawer).to_contain_text(conversation)


def test_properties_are_edited_as_json(memories: Console, tenant: Tenant, ids: dict[str, str]) -> None:
    drawer = memories.open_memory("Heliotrope")
    drawer.get_by_role("button", name="Edit").click()
    field = drawer.get_by_label("Properties (JSON)")
    field.fill('{"status": ')
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_role("alert")).to_contain_text("This is not JSON")
    field.fill('{"depth": {"metres": [1, 2]}}')
    drawer.get_by_role("button", name="Save").click()
    memories.told("Left out, and so unchanged: status.")
    expect(drawer).to_contain_text('"metres"')
    stored = tenant.call("GET", f"/memories/entities/{ids['Heliotrope']}")["entity"]
    assert stored["properties"] == {"status": "active", "depth": {"metres": [1, 2]}}


def test_a_refusal_is_shown_at_its_field(memories: Console) -> None:
    memories.refusal(422)
    drawer = memories.open_memory("Heliotrope")
    drawer.get_by_role("button", name="Edit").click()
    drawer.get_by_label("Properties (JSON)").fill('{"long": "' + "x" * 17_000 + '"}')
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.locator(".field-error")).to_contain_text("at most 16384 bytes")
    expect(drawer.get_by_label("Properties (JSON)")).to_have_attribute("aria-invalid", "true")


def test_a_change_by_somebody_else_is_not_overwritten_unseen(memories: Console, tenant: Tenant, ids: dict[str, str]) -> None:
    memories.refusal(412)
    path = f"/memories/entities/{ids['Heliotrope']}"
    drawer = memories.open_memory("Heliotrope")
    drawer.get_by_role("button", name="Edit").click()
    drawer.get_by_label("Description").fill("mine")
    tenant.call("PUT", path, {"description": "theirs"})
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_role("alert")).to_contain_text("Somebody else has changed this memory")
    assert tenant.call("GET", path)["entity"]["description"] == "theirs"
    drawer.get_by_role("button", name="Keep my text").click()
    expect(drawer.get_by_label("Description")).to_have_value("mine")
    drawer.get_by_role("button", name="Save").click()
    memories.told("Saved")
    assert tenant.call("GET", path)["entity"]["description"] == "mine"


def test_single_relations_are_removed_and_their_ends_stay(memories: Console, tenant: Tenant, ids: dict[str, str]) -> None:
    drawer = memories.open_memory("Heliotrope")
    expect(drawer.get_by_role("list", name="Incoming relations: 1 relation")).to_contain_text("Olaf")
    drawer.get_by_role("button", name="Remove the relation located in Bergen").click()
    drawer.get_by_role("button", name="Remove", exact=True).click()
    memories.told("Relation removed.")
    expect(drawer.get_by_role("list", name="Outgoing relations: 0 relations")).to_be_attached()
    left = tenant.call("GET", "/memories/relations")["items"]
    assert [one["relation_type"] for one in left] == ["works_on"]
    assert tenant.names() == set(ids)


def test_an_earlier_version_comes_back(memories: Console, tenant: Tenant, ids: dict[str, str]) -> None:
    path = f"/memories/entities/{ids['Heliotrope']}"
    tenant.call("PUT", path, {"description": "a mistake"})
    drawer = memories.open_memory("Heliotrope")
    drawer.get_by_text("History").click()
    expect(drawer.locator(".versions del")).to_have_text("A dashboard of the tides")
    drawer.get_by_role("button", name="Restore version 1").click()
    memories.told("Version 1 is back.")
    expect(drawer.locator(".description")).to_have_text("A dashboard of the tides")
    assert tenant.call("GET", path)["entity"]["description"] == "A dashboard of the tides"


# deleting
def test_many_are_deleted_at_once_after_saying_how_many_relations_go_and_can_come_back(
    memories: Console, tenant: Tenant, ids: dict[str, str]
) -> None:
    memories.button("Select Mode").click()
    memories.row("Heliotrope").click()
    memories.row("likes green tea").click()
    expect(memories.page.get_by_text("2 memories selected")).to_be_visible()
    memories.button("Delete selected").click()
    dialog = memories.page.get_by_role("dialog", name="Delete memories")
    expect(dialog).to_contain_text("2 memories will be deleted. 2 relations go with them.")
    assert tenant.names() == set(ids), "nothing is gone before the answer"
    dialog.get_by_role("button", name="Delete").click()
    memories.told("Deleted 2 memories and 2 relations.")
    memories.drawn("Olaf", "Bergen")
    assert tenant.names() == {"Olaf", "Bergen"}
    memories.button("Undo").click()
    memories.told("Brought 2 memories back.")
    memories.drawn(*ids)
    assert tenant.names() == set(ids)
    assert len(tenant.call("GET", "/memories/relations")["items"]) == 2


def test_a_box_in_the_graph_selects(memories: Console, ids: dict[str, str]) -> None:
    places = memories.layout("Grid").values()
    memories.button("Select Mode").click()
    # the selection bar has moved the graph
    memories.button("Fit View").click()
    places = memories.graph().values()
    mouse = memories.page.mouse
    mouse.move(min(one["x"] for one in places) - 30, min(one["y"] for one in places) - 30)
    mouse.down()
    mouse.move(max(one["x"] for one in places) + 30, max(one["y"] for one in places) + 30, steps=5)
    mouse.up()
    expect(memories.page.get_by_text(f"{len(ids)} memories selected")).to_be_visible()


def test_words_are_forgotten_after_showing_what_they_stand_for(memories: Console, tenant: Tenant, ids: dict[str, str]) -> None:
    memories.button("Forget by words").click()
    dialog = memories.page.get_by_role("dialog", name="Forget by words")
    dialog.get_by_label("What to forget").fill("green tea")
    dialog.get_by_role("button", name="Find").click()
    expect(dialog).to_contain_text("Nothing has been deleted yet")
    expect(dialog.locator(".row-name").first).to_have_text("likes green tea")
    assert tenant.names() == set(ids)
    dialog.get_by_role("button", name=re.compile("^Forget")).click()
    memories.told("Deleted")
    assert "likes green tea" not in tenant.names()
    memories.button("Undo").click()
    memories.told("Brought")
    assert tenant.names() == set(ids)


# safety and everybody's use
def test_stored_markup_stays_text_everywhere(console: Console, tenant: Tenant) -> None:
    hostile = tenant.memory(HOSTILE, "person", description=f"{HOSTILE}<script>alert(2)</script>", properties={HOSTILE: HOSTILE})
    other = tenant.memory("Olaf", "person")
    tenant.relation(other, hostile)
    console.sign_in(tenant.key, "ada")
    drawer = console.open_memory(HOSTILE)
    drawer.get_by_text("History").click()
    expect(drawer.locator(".versions li")).to_have_count(1)
    console.button("Select Mode").click()
    console.button("Forget by words").click()
    console.page.get_by_label("What to forget").fill("onerror")
    console.button("Find").click()
    expect(console.page.locator(".candidates .row-name").first).to_have_text(HOSTILE)
    assert console.page.locator("#app img").count() == 0
    assert console.page.locator("#app script").count() == 0


def test_the_keyboard_is_enough(memories: Console) -> None:
    page = memories.page
    page.get_by_label("Keyword").focus()
    row = memories.row("Olaf")
    for _ in range(60):
        page.keyboard.press("Tab")
        if row.evaluate("row => row === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(memories.drawer.get_by_role("heading", name="Olaf")).to_be_focused()
    page.keyboard.press("Escape")
    expect(memories.drawer).to_have_count(0)
    expect(row).to_be_focused()


def test_a_narrow_screen_shows_everything_without_scrolling_sideways(memories: Console) -> None:
    page = memories.page
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    memories.button("Graph").click()
    memories.drawn("Heliotrope", "Olaf", "Bergen", "likes green tea")
    assert all(0 <= place["x"] <= 360 for place in memories.graph().values())
    memories.button("List").click()
    memories.open_memory("Olaf")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    memories.button("Close the drawer").click()
    expect(memories.row("Olaf")).to_be_visible()


def test_nothing_remembered_is_explained(console: Console, tenant: Tenant) -> None:
    console.sign_in(tenant.key, "nobody")
    expect(console.page.get_by_text("Nothing is remembered here yet")).to_be_visible()
    expect(console.page.get_by_text("Nothing to draw")).to_be_visible()
