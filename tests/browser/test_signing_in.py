"""Who gets in, what stays behind, and what each role is offered."""

import pytest
from playwright.sync_api import expect

from tests.browser.console import BOB, Console, Tenant

pytestmark = pytest.mark.browser


def test_a_key_opens_one_person_s_memory_and_nobody_else_s(console: Console, tenant: Tenant) -> None:
    tenant.memory("likes green tea")
    tenant.memory("likes espresso", scope=BOB)
    Tenant.new(tenant.stack).memory("likes cocoa")
    console.sign_in(tenant.key, "ada")
    expect(console.rows()).to_have_text(["likes green tea"])
    console.drawn("likes green tea")


@pytest.mark.parametrize("token", ["tm_nobody", "a.b.c"])
def test_a_token_that_is_not_valid_is_refused_in_words(console: Console, token: str) -> None:
    console.refusal(401)
    console.try_token(token, "ada")
    expect(console.page.get_by_role("alert")).to_contain_text("not valid here, or it has expired")
    expect(console.button("Sign out")).to_have_count(0)


def test_a_token_without_the_scope_is_told_which_one(console: Console, tenant: Tenant) -> None:
    console.refusal(403)
    key = tenant.call("POST", f"/tenants/{tenant.id}/api-keys", {"name": "chat only", "scopes": ["chat"]})["secret"]
    console.try_token(key, "ada")
    expect(console.page.get_by_role("alert")).to_contain_text("memory:read")


def test_the_token_lives_in_this_tab_only_and_goes_with_signing_out(console: Console, tenant: Tenant) -> None:
    console.sign_in(tenant.key, "ada")
    console.page.reload()
    expect(console.button("Sign out")).to_be_visible()
    assert tenant.key in console.page.evaluate("JSON.stringify(sessionStorage)")
    assert tenant.key not in console.page.evaluate("JSON.stringify(localStorage) + document.cookie")
    console.button("Sign out").click()
    expect(console.button("Sign in")).to_be_visible()
    assert console.page.evaluate("sessionStorage.length") == 0
    assert [url for url in [*console.requests, console.page.url] if tenant.key in url] == []


def test_a_session_that_ends_says_so(console: Console, tenant: Tenant) -> None:
    console.refusal(401)
    console.sign_in(tenant.key, "ada")
    expect(console.page.get_by_text("Nothing is remembered here yet")).to_be_visible()
    expect(console.page.get_by_text("Nothing to draw")).to_be_visible()
    problem = '{"status": 401, "code": "unauthorized", "detail": "A valid bearer token is required."}'
    console.page.route("**/v1/memories/**", lambda route: route.fulfill(status=401, content_type="application/problem+json", body=problem))
    console.button("Reload").click()
    expect(console.page.get_by_role("status")).to_contain_text("signed out")
    assert console.page.evaluate("sessionStorage.length") == 0


def test_on_the_local_stack_one_signs_in_as_anybody(console: Console, tenant: Tenant) -> None:
    tenant.memory("likes green tea")
    console.open()
    form = console.page.get_by_role("form", name="Sign in as")
    form.get_by_label("Name").fill("grace")
    form.get_by_label("Tenant").select_option(tenant.id)
    form.get_by_role("button").click()
    expect(console.page.locator(".who")).to_contain_text("grace")
    expect(console.rows()).to_have_text(["likes green tea"])  # an administrator sees the whole tenant


def test_a_dashboard_user_narrows_the_view_to_a_person_or_a_knowledge_base(console: Console, tenant: Tenant) -> None:
    tenant.memory("likes green tea")
    tenant.memory("likes espresso", scope=BOB)
    base = tenant.call("POST", "/knowledge-bases", {"name": "Manual", "kbMemoryMode": "kb_restricted"})["id"]
    tenant.memory("pump P7", "concept", {"knowledge_base_id": base})
    console.sign_in(tenant.token("admin"))
    expect(console.rows()).to_have_text(["likes espresso", "likes green tea"])
    console.page.get_by_label("Memory of").select_option("one person")
    console.page.get_by_label("Subject").fill("bob")
    console.button("Show").click()
    expect(console.rows()).to_have_text(["likes espresso"])
    console.page.get_by_label("Memory of").select_option("a knowledge base")
    console.page.get_by_label("Knowledge base", exact=True).fill(base)
    console.button("Show").click()
    expect(console.rows()).to_have_text(["pump P7"])


@pytest.mark.parametrize(
    ("role", "pages", "foreign", "lands"),
    [
        ("member", ["My Memories"], "tenant", "My Memories"),
        ("admin", ["My Memories", "Tenant", "Agents"], "site", "My Memories"),
        ("platform", ["Site Settings", "Tenant"], "agents", "Site Settings › Memory"),
    ],
)
def test_each_role_is_offered_what_it_may_do(
    console: Console, tenant: Tenant, role: str, pages: list[str], foreign: str, lands: str
) -> None:
    platform = tenant.stack.credentials["platform_admin_token"]
    console.sign_in(platform if role == "platform" else tenant.token(role))
    expect(console.page.get_by_role("navigation", name="Pages").get_by_role("link")).to_have_text(pages)
    console.page.evaluate(f"location.hash = '{foreign}'")
    expect(console.page.get_by_role("heading", level=1)).to_have_text(lands)


def test_the_api_s_own_address_leads_to_the_console_too(console: Console) -> None:
    for address in ("/", "/console", "/console/", "/api/console", "/api/console/"):
        console.page.goto(f"{console.stack.origin}{address}")
        expect(console.button("Sign in")).to_be_visible()
