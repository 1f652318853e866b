"""The console as a person uses it, and a tenant to look at."""

import re
from dataclasses import dataclass, field
from typing import Any

import httpx
from playwright.sync_api import ConsoleMessage, Dialog, Error, Locator, Page, expect

from tests.e2e.local_stack import Stack

ADA = {"external_subject_id": "ada"}
BOB = {"external_subject_id": "bob"}


@dataclass
class Tenant:
    """A new durable tenant with an API key of its own."""

    stack: Stack
    id: str
    key: str

    @classmethod
    def new(cls, stack: Stack) -> "Tenant":
        with stack.client("platform_admin_token") as platform:
            id = platform.post("/v1/tenants", json={"name": "Harbour"}).raise_for_status().json()["id"]
            platform.patch(f"/v1/tenants/{id}/memory-settings", json={"mode": "durable", "retention": "automatic"}).raise_for_status()
            body = {"name": "console", "scopes": ["chat", "memory:read", "memory:write", "admin"]}
            key = platform.post(f"/v1/tenants/{id}/api-keys", json=body).raise_for_status().json()["secret"]
        return cls(stack, id, key)

    def token(self, role: str, sub: str = "grace") -> str:
        return self.stack.dashboard_token(sub=sub, role=role, tenant_id=self.id)

    def call(self, method: str, path: str, body: Any = None, **scope: str) -> Any:
        """Calls the API for ada, or for the scope that is named."""
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.stack.base_url}/v1{path}"
        answer = httpx.request(method, url, params=scope or ADA, json=body, headers=headers, timeout=60, trust_env=False)
        return answer.raise_for_status().json()

    def memory(self, name: str, entity_type: str = "fact", scope: dict[str, str] = ADA, **more: Any) -> str:
        id: str = self.call("POST", "/memories/entities", {"name": name, "entity_type": entity_type, **more}, **scope)["id"]
        return id

    def relation(self, source: str, target: str, relation_type: str = "knows") -> str:
        ends = {"source_entity_id": source, "target_entity_id": target, "relation_type": relation_type}
        id: str = self.call("POST", "/memories/relations", ends)["id"]
        return id

    def names(self) -> set[str]:
        return {one["name"] for one in self.call("GET", "/memories/entities")["items"]}


@dataclass
class Console:
    page: Page
    stack: Stack
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._told)
        self.page.on("pageerror", self._failed)
        self.page.on("dialog", self._asked)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _told(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _failed(self, error: Error) -> None:
        self.errors.append(str(error))

    def _asked(self, dialog: Dialog) -> None:
        self.errors.append(f"a script of stored text has run: {dialog.message}")
        dialog.dismiss()

    def refusal(self, status: int) -> None:
        """The browser itself reports an answer of this status; the test wants it."""
        self.expected.append(f"the server responded with a status of {status}")

    def unexpected(self) -> list[str]:
        return [told for told in self.errors if not any(one in told for one in self.expected)]

    # signing in
    def open(self) -> None:
        self.page.goto(f"{self.stack.origin}/console")

    def try_token(self, token: str, subject: str | None = None) -> None:
        self.open()
        self.page.get_by_label("Token", exact=True).fill(token)
        if subject is not None:
            self.page.get_by_label("Subject (external_subject_id)").fill(subject)
        self.button("Sign in").click()

    def sign_in(self, token: str, subject: str | None = None) -> None:
        self.try_token(token, subject)
        expect(self.button("Sign out")).to_be_visible()

    # what is on the page
    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def row(self, name: str) -> Locator:
        return self.page.get_by_role("list", name="Memories").locator(".row").filter(has=self.page.get_by_text(name, exact=True)).first

    def rows(self) -> Locator:
        return self.page.locator(".rows .row-name")

    @property
    def drawer(self) -> Locator:
        return self.page.get_by_role("complementary", name="Memory")

    def open_memory(self, name: str) -> Locator:
        self.row(name).click()
        expect(self.drawer.get_by_role("heading", name=name, exact=True)).to_be_visible()
        return self.drawer

    def told(self, text: str | re.Pattern[str]) -> None:
        """What the page says after something has been done."""
        expect(self.page.locator(".toast")).to_contain_text(text)

    # the graph, which is a canvas
    def graph(self) -> dict[str, dict[str, float]]:
        """Where each memory of the graph stands on the page, by its label."""
        found: dict[str, dict[str, float]] = self.page.evaluate(
            """() => {
                const place = document.querySelector(".graph-canvas"), box = place.getBoundingClientRect();
                return Object.fromEntries(place._cyreg.cy.nodes().map(node => {
                    const at = node.renderedPosition();
                    return [node.data("label"), {x: box.x + at.x, y: box.y + at.y}];
                }));
            }"""
        )
        return found

    def layout(self, name: str) -> dict[str, dict[str, float]]:
        self.button(name).click()
        expect(self.page.locator(f'.graph-canvas[data-layout="{name.lower()}"]')).to_be_visible()
        return self.graph()

    def drawn(self, *names: str) -> None:
        """Waits until the graph shows exactly these memories."""
        self.page.wait_for_function(
            """wanted => {
                const cy = document.querySelector(".graph-canvas[data-layout]")?._cyreg?.cy;
                return cy && JSON.stringify(cy.nodes().map(node => node.data("label")).sort()) === JSON.stringify(wanted);
            }""",
            arg=sorted(names),
        )

    def zoom(self) -> float:
        level: float = self.page.evaluate('document.querySelector(".graph-canvas")._cyreg.cy.zoom()')
        return level
