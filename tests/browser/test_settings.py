"""Settings of memory: the platform's, a tenant's, an agent's."""

import pytest
from playwright.sync_api import expect

from tests.browser.console import Console, Tenant

pytestmark = pytest.mark.browser


def test_an_administrator_changes_what_the_tenant_remembers(console: Console, tenant: Tenant) -> None:
    console.sign_in(tenant.token("admin"))
    console.page.get_by_role("link", name="Tenant").click()
    expect(console.button("Save")).to_be_disabled()
    console.page.get_by_label("Retention").select_option("explicit_only")
    console.page.get_by_label("Cooldown (seconds)").fill("60")
    console.button("Save").click()
    console.told("Settings saved.")
    stored = tenant.call("GET", f"/tenants/{tenant.id}/memory-settings")
    assert (stored["retention"], stored["extraction"]["cooldown_seconds"]) == ("explicit_only", 60)
    console.page.get_by_label("Cooldown (seconds)").fill("")
    console.button("Save").click()
    expect(console.page.get_by_label("Cooldown (seconds)")).to_have_value("180")  # as the platform has it


def test_a_setting_that_is_refused_says_so_where_it_stands(console: Console, tenant: Tenant) -> None:
    console.refusal(422)
    console.sign_in(tenant.token("admin"))
    console.page.get_by_role("link", name="Tenant").click()
    field = console.page.get_by_label("Weight of recency")
    field.fill("7")
    console.button("Save").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(console.page.locator(".field-error")).to_contain_text("less than or equal to 1")
    assert tenant.call("GET", f"/tenants/{tenant.id}/memory-settings")["recency_weight"] == 0.15


def test_settings_that_somebody_else_has_changed_are_not_overwritten(console: Console, tenant: Tenant) -> None:
    console.refusal(412)
    path = f"/tenants/{tenant.id}/memory-settings"
    console.sign_in(tenant.token("admin"))
    console.page.get_by_role("link", name="Tenant").click()
    console.page.get_by_label("Half-life (days)").fill("10")
    tenant.call("PATCH", path, {"half_life_days": 90})
    console.button("Save").click()
    expect(console.page.get_by_role("alert")).to_contain_text("Somebody else has changed these settings")
    console.button("Show the newest").click()
    expect(console.page.get_by_label("Half-life (days)")).to_have_value("90")


def test_memory_of_an_agent_is_switched(console: Console, tenant: Tenant) -> None:
    agent = tenant.call("POST", "/agents", {"name": "Helper"})["id"]
    console.sign_in(tenant.token("admin"))
    console.page.get_by_role("link", name="Agents").click()
    console.page.get_by_label("Agent", exact=True).select_option(agent)
    expect(console.page.get_by_label("Enable memory")).not_to_be_checked()
    console.page.get_by_label("Enable memory").check()
    console.page.get_by_label("Memories per retrieval").fill("25")
    console.button("Save").click()
    console.told("Settings saved.")
    stored = tenant.call("GET", f"/agents/{agent}")
    assert stored["enable_memory"] is True
    assert stored["memory_config"] == {"max_memories_per_retrieval": 25, "auto_extract": True, "importance_threshold": "medium"}


def test_the_platform_s_administrator_sets_what_tenants_inherit(console: Console, tenant: Tenant) -> None:
    with tenant.stack.client("platform_admin_token") as platform:
        before = platform.get("/v1/admin/site-settings", params={"category": "memory"}).json()
        try:
            console.sign_in(tenant.stack.credentials["platform_admin_token"])
            expect(console.page.get_by_role("heading", level=1)).to_have_text("Site Settings › Memory")
            console.page.get_by_label("Pending turns").fill("9")
            console.button("Save").click()
            console.told("Settings saved.")
            console.page.get_by_role("link", name="Tenant").click()
            console.page.get_by_label("Tenant", exact=True).select_option(tenant.id)
            expect(console.page.get_by_label("Pending turns")).to_have_value("9")
        finally:
            platform.put("/v1/admin/site-settings", json=before).raise_for_status()
