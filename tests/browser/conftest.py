"""A real Chromium before the local stack, and a tenant of each test's own."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.console import Console, Tenant
from tests.e2e.local_stack import Stack

# What a browser in a container needs, and nothing that lets it reach out by itself.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """The browser of this machine. Skips where there is none, but never in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and (os.environ.get("CI") or os.environ.get("TIDEMARK_REQUIRE_BROWSER")):
        pytest.fail("CI must run this: there is no Chromium on this machine")
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    return found


# Not longer than a module: Playwright keeps an event loop running in this thread, beside which no other test could start its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def tenant(stack: Stack) -> Tenant:
    return Tenant.new(stack)


@pytest.fixture
def console(browser: Browser, stack: Stack) -> Iterator[Console]:
    """A fresh browser profile before the sign-in page. Fails the test for an error in the browser's console and for a request to anybody
    but this stack."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(15_000)
    opened = Console(context.new_page(), stack)
    yield opened
    context.close()
    assert opened.unexpected() == []
    assert [url for url in opened.requests if not url.startswith(f"{stack.origin}/")] == []
