"""The main job over HTTP on the local stack: functions, queue, stream and schedule as they are deployed."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.local_stack import ROOT, Stack, wait_until

pytestmark = pytest.mark.emulator


class Person:
    """One of the tenant's users, as the tenant's server speaks for them."""

    def __init__(self, stack: Stack, subject: str) -> None:
        self.stack = stack
        self.query = {"external_subject_id": subject}

    def send(self, method: str, path: str, body: Any = None, **query: str) -> httpx.Response:
        with self.stack.client() as client:
            return client.request(method, path, json=body, params=self.query | query)

    def get(self, path: str, **query: str) -> Any:
        return self.send("GET", path, **query).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        return self.send("POST", path, body).raise_for_status().json()

    def conversation(self, **body: Any) -> str:
        with self.stack.client() as client:
            made: str = client.post("/v1/conversations", json=self.query | body).raise_for_status().json()["id"]
        return made

    def say(self, conversation: str, content: str) -> Any:
        return self.post(f"/v1/conversations/{conversation}/messages", {"content": content})

    def messages(self, conversation: str) -> list[Any]:
        found: list[Any] = self.get(f"/v1/conversations/{conversation}/messages", limit="100")["items"]
        return found

    def memories(self) -> str:
        return " / ".join(one["name"] for one in self.get("/v1/memories/entities", page_size="100")["items"])


def set_extraction(stack: Stack, *, async_enabled: bool = True, **settings: int) -> None:
    tenant = stack.credentials["tenant_id"]
    with stack.client("dashboard_token") as admin:
        admin.patch(
            f"/v1/tenants/{tenant}/memory-settings", json={"extraction": {"async_enabled": async_enabled, **settings}}
        ).raise_for_status()


def workers(stack: Stack, function: str) -> list[int]:
    """Processes of this instance that serve a function."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(stack.state) in command and function in command:
            found.append(int(folder.name))
    return found


def test_the_credentials_file_opens_every_door(stack: Stack) -> None:
    with stack.client() as key, stack.client("dashboard_token") as admin, stack.client("platform_admin_token") as platform:
        tenant = stack.credentials["tenant_id"]
        assert key.get("/v1/conversations").status_code == 200
        assert admin.get(f"/v1/tenants/{tenant}/memory-settings").json()["mode"] == "durable"
        assert platform.get(f"/v1/tenants/{tenant}").json()["id"] == tenant


def test_what_was_remembered_in_one_conversation_answers_in_another(stack: Stack) -> None:
    ada = Person(stack, "ada#/é🙂")
    told = ada.say(ada.conversation(), "Remember this: my sister Ingrid lives in Bergen.")
    assert told["metadata"]["finish_reason"] == "memory_confirmation"
    answer = ada.say(ada.conversation(), "Where does my sister live?")
    assert answer["metadata"]["memory_used"] is True
    assert "Bergen" in answer["message"]["content"]
    assert "Bergen" not in Person(stack, "bob").say(Person(stack, "bob").conversation(), "Where does my sister live?")["message"]["content"]


def test_what_was_said_is_learned_through_the_queue_and_found_in_the_index(stack: Stack) -> None:
    set_extraction(stack, max_pending_turns=1, cooldown_seconds=10)
    carol = Person(stack, "carol")
    conversation = carol.conversation()
    carol.say(conversation, "I work at Acme as an auditor.")
    wait_until(lambda: "Acme" in carol.memories(), 60)
    [job] = carol.get("/v1/extractions", conversation_id=conversation, state="completed")["items"]
    assert job["trigger"] == "pending_limit"
    wait_until(lambda: "Acme" in str(carol.post("/v1/memories/search", {"query": "Where do I work?"})["items"]), 60)


def test_a_cooldown_ends_by_itself(stack: Stack) -> None:
    set_extraction(stack, max_pending_turns=50, cooldown_seconds=10)
    dora = Person(stack, "dora")
    dora.say(dora.conversation(), "I work at Acme as an auditor.")
    wait_until(lambda: "Acme" in dora.memories(), 120)
    assert dora.get("/v1/extractions")["items"][0]["trigger"] in ("cooldown", "sweep")


def test_the_command_imports_and_the_next_turn_compacts(stack: Stack, tmp_path: Path) -> None:
    file, eve = tmp_path / "chat.jsonl", Person(stack, "eve")
    set_extraction(stack, async_enabled=False)  # one poller of the emulator serves queue and stream in turn
    with stack.client("dashboard_token") as admin:
        body = {"name": "Small", "enable_memory": True, "context_compression_config": {"context_window": 8000, "tail_max_tokens": 500}}
        agent = admin.post("/v1/agents", json=body).raise_for_status().json()["id"]
    conversation = eve.conversation(agent_id=agent)
    said = [
        {
            "role": ("user", "assistant")[number % 2],
            "content": f"Point {number}: " + "the long pier of the harbour was repaired in spring. " * 3,
            "created_at": f"2023-05-{1 + number // 60:02}T10:{number % 60:02}:00Z",
        }
        for number in range(250)
    ]
    said[77]["content"] = "The heliotrope flag was hoisted at noon."
    file.write_text("\n".join(map(json.dumps, said)))
    arguments = ["import", str(file), "--subject", "eve", "--conversation", conversation]
    environment = {**os.environ, "TIDEMARK_URL": stack.base_url, "TIDEMARK_API_KEY": stack.credentials["api_key"]}
    code = f"import sys; from tidemark.cli import main; sys.exit(main({arguments!r}))"
    for _ in range(2):  # the second run finds everything there
        ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        assert (ran.returncode, ran.stdout.strip()) == (0, conversation), ran.stderr
    assert eve.get(f"/v1/conversations/{conversation}")["message_count"] == 250
    assert eve.say(conversation, "Where did we stop?")["metadata"]["compacted"] is True

    def found() -> bool:
        body = {"query": "When was the heliotrope flag hoisted?", "sources": ["messages"]}
        return any("heliotrope" in one["text"] for one in eve.post("/v1/memories/search", body)["messages"])

    wait_until(found, 120)


def test_a_turn_whose_worker_is_killed_is_whole_or_not_there(stack: Stack) -> None:
    frank = Person(stack, "frank")
    conversation = frank.conversation()
    frank.say(conversation, "before")
    stop = threading.Event()

    def kill() -> None:
        while not stop.is_set():
            for pid in workers(stack, "ChatFunction"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            stop.wait(0.4)

    killer = threading.Thread(target=kill)
    killer.start()
    path = f"/v1/conversations/{conversation}/messages"
    answers = [frank.send("POST", path, {"content": f"turn {number}"}) for number in range(12)]
    stop.set()
    killer.join()
    accepted = [answer.json()["message"]["id"] for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer.status_code != 200:
            assert answer.status_code in (502, 504)
            assert answer.headers["content-type"].startswith("application/problem+json")
    messages = frank.messages(conversation)
    assert set(accepted) <= {one["id"] for one in messages}
    assert [one["role"] for one in messages] == ["user", "assistant"] * (len(messages) // 2)
    assert all(answer["parent_id"] == question["id"] for question, answer in zip(messages[::2], messages[1::2], strict=True))
    assert frank.say(conversation, "after")["message"]["parent_id"] == frank.messages(conversation)[-2]["id"]


def test_an_extraction_that_is_killed_and_restarted_loses_and_doubles_nothing(instances: Callable[..., Stack]) -> None:
    """That the next worker takes the dead one's lease over when it has run out is shown by the functional tests."""
    first = instances()
    set_extraction(first, max_pending_turns=50, cooldown_seconds=3600)
    grace = Person(first, "grace")
    conversation = grace.conversation()
    names = [f"{a}{b}" for a in ("Anna", "Bert", "Cleo", "Dina", "Egon") for b in ("lo", "mar", "vik", "sen")]
    lines = [{"role": "user", "content": f"My colleague {name} lives in Oslo."} for name in names]
    grace.post(f"/v1/conversations/{conversation}/import", {"messages": lines})
    grace.send("POST", f"/v1/conversations/{conversation}/extract").raise_for_status()
    wait_until(lambda: names[0] in grace.memories(), 60)
    for pid in workers(first, "ExtractionFunction"):
        os.kill(pid, signal.SIGKILL)
    before = grace.memories().split(" / ")
    assert first.stop() == 0
    grace = Person(instances(), "grace")
    after = grace.memories().split(" / ")
    assert set(before) <= set(after)
    assert len(after) == len(set(after))
    assert len(grace.messages(conversation)) == len(names)
    [job] = grace.get("/v1/extractions")["items"]
    assert job["state"] in ("running", "completed")
