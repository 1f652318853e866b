"""Learning in the background: when it is due, one worker at a time, whatever fails in between."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.memory.extraction import LASTS
from tidemark.memory.model import Statement
from tidemark.models.ports import ModelUnavailableError
from tidemark.storage import keys
from tidemark.storage.leases import lease
from tidemark.work import Wake

from tests.support.world import Client, World


@pytest.fixture
def ada(aws: World) -> Client:
    return aws.key(aws.tenant(extraction={"cooldown_seconds": 60, "max_pending_turns": 3}), "ada")


def jobs(client: Client, **query: str) -> list[Any]:
    return client.walk("/v1/extractions", **query)


def names(client: Client) -> str:
    return " / ".join(one["name"] for one in client.memories())


def test_a_newer_turn_restarts_the_cooldown(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    [(first, delay)] = aws.wakes()
    assert (first.trigger, 59 <= delay <= 61) == ("cooldown", True)
    aws.clock.forward(seconds=50)
    ada.say(conversation, "I live in Bergen.")
    [(second, _)] = aws.wakes()
    aws.clock.forward(seconds=12)
    assert aws.extract(first) == []  # a stale message is no failure
    assert jobs(ada) == []
    aws.clock.forward(seconds=50)
    assert aws.extract(second) == []
    assert [(job["state"], job["trigger"], job["pending_turns"]) for job in jobs(ada)] == [("completed", "cooldown", 2)]
    assert "Acme" in names(ada)
    assert "Bergen" in names(ada)


def test_enough_pending_turns_are_due_at_once(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    for words in ("I work at Acme.", "I live in Bergen.", "I like tea."):
        ada.say(conversation, words)
    *_, (wake, delay) = aws.wakes()
    assert (wake.trigger, delay) == ("pending_limit", 0)
    assert aws.extract(wake) == []
    [job] = jobs(ada)
    assert (job["state"], job["pending_turns"]) == ("completed", 3)
    assert job["entities"] >= 3


def test_a_message_that_comes_again_changes_nothing(aws: World, ada: Client) -> None:
    ada.say(ada.conversation(), "I work at Acme.")
    aws.clock.forward(minutes=2)
    [(wake, _)] = aws.wakes()
    for _ in range(3):
        assert aws.extract(wake) == []
    assert [job["state"] for job in jobs(ada)] == ["completed"]
    assert [one["version"] for one in ada.memories()] == [1] * len(ada.memories())


def test_one_worker_at_a_time(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    aws.clock.forward(minutes=2)
    [(wake, _)] = aws.wakes()
    with lease(keys.extraction_lease(ada.caller.tenant_id, conversation), LASTS):
        assert aws.extract(wake) == ["message-0"]
        assert ada.memories() == []
    assert aws.extract(wake) == []
    assert "Acme" in names(ada)


def test_a_lease_of_a_dead_worker_runs_out(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    aws.clock.forward(minutes=2)
    [(wake, _)] = aws.wakes()
    dead = lease(keys.extraction_lease(ada.caller.tenant_id, conversation), LASTS)
    dead.__enter__()  # and never left
    assert aws.extract(wake) == ["message-0"]
    aws.clock.forward(seconds=LASTS.total_seconds() + 1)
    assert aws.extract(wake) == []
    assert "Acme" in names(ada)


def test_one_failing_conversation_does_not_hold_up_the_others(aws: World, ada: Client) -> None:
    good, bad = ada.conversation(), ada.conversation()
    ada.say(bad, "I work at Acme.")
    ada.say(good, "I live in Bergen.")
    aws.clock.forward(minutes=2)
    wakes = [wake for wake, _ in aws.wakes()]
    learn = bootstrap.extraction()._learn

    def failing(state: Any, *more: Any) -> Any:
        if state.id == bad:
            raise RuntimeError("no")
        return learn(state, *more)

    aws.patch.setattr(bootstrap.extraction(), "_learn", failing)
    assert aws.extract(*wakes) == ["message-0"]
    assert "Bergen" in names(ada)
    [failed] = jobs(ada, conversation_id=bad)
    assert (failed["state"], failed["reason"], failed["attempts"]) == ("failed", "RuntimeError", 1)
    aws.patch.setattr(bootstrap.extraction(), "_learn", learn)
    assert aws.extract(wakes[0]) == []
    assert "Acme" in names(ada)
    assert jobs(ada, state="completed")


def test_a_poison_message_fails_alone(aws: World, ada: Client) -> None:
    ada.say(ada.conversation(), "I work at Acme.")
    aws.clock.forward(minutes=2)
    [(wake, _)] = aws.wakes()
    assert aws.deliver(["{", wake.model_dump_json(), "{}"]) == ["message-0", "message-2"]
    assert "Acme" in names(ada)


def test_by_hand_what_is_pending_runs_now(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    path = f"/v1/conversations/{conversation}/extract"
    assert ada.post(path, None)["state"] == "skipped"
    ada.say(conversation, "I work at Acme.")
    aws.wakes()
    asked = ada.send("POST", path)
    assert (asked.status, asked.body["state"], asked.body["trigger"]) == (202, "queued", "manual")
    assert aws.deliver() == []
    [done] = jobs(ada, state="completed")
    assert done["id"] == asked.body["id"]
    assert "Acme" in names(ada)


def test_turns_that_came_meanwhile_stay_pending(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    aws.clock.forward(minutes=2)
    [(wake, _)] = aws.wakes()
    learn = bootstrap.extraction()._learn

    def slow(*given: Any) -> Any:
        ada.say(conversation, "I live in Bergen.")
        return learn(*given)

    aws.patch.setattr(bootstrap.extraction(), "_learn", slow)
    assert aws.extract(wake) == []
    aws.patch.setattr(bootstrap.extraction(), "_learn", learn)
    assert "Bergen" not in names(ada)
    aws.learn()
    assert "Bergen" in names(ada)


def test_a_setting_of_later_does_not_reach_back(aws: World) -> None:
    tenant = aws.tenant(retention="explicit_only")
    ada = aws.key(tenant, "ada")
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    aws.user(tenant).patch(f"/v1/tenants/{tenant}/memory-settings", {"retention": "automatic"})
    ada.say(conversation, "I live in Bergen.")
    aws.learn()
    assert "Bergen" in names(ada)
    assert "Acme" not in names(ada)


def test_what_only_the_assistant_said_is_nobody_s_fact(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    given = [{"role": "user", "content": "Suggest something."}, {"role": "assistant", "content": "I work at Acme and I live in Bergen."}]
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": given})
    aws.learn()
    assert ada.memories() == []


def test_a_long_import_is_learned_to_its_end(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    for start in range(0, 300, 100):
        given = [{"role": "user", "content": "ok"} for _ in range(100)]
        given[50]["content"] = f"My colleague Person{'ABC'[start // 100]} lives in Oslo."
        ada.post(f"/v1/conversations/{conversation}/import", {"messages": given})
    for _ in range(3):
        aws.clock.forward(hours=1)
        assert aws.deliver() == []
    for letter in "ABC":
        assert f"Person{letter}" in names(ada)
    state = bootstrap.conversation_store().get(ada.caller.tenant_id, conversation)
    assert state is not None
    assert (state.pending_turns, state.extract_at) == (0, None)


# the sweeper
def test_the_sweeper_finds_what_a_lost_message_left(aws: World, ada: Client) -> None:
    due, not_due = ada.conversation(), ada.conversation()
    ada.say(due, "I work at Acme.")
    aws.clock.forward(minutes=2)
    ada.say(not_due, "I live in Bergen.")
    aws.queued()  # lost
    sweep = {"version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.scheduler"}
    assert aws.invoke("sweeper", sweep)["woken"] == 1
    [(wake, delay)] = aws.wakes()
    assert (wake.conversation_id, wake.trigger, delay) == (due, "sweep", 0)
    assert aws.extract(wake) == []
    assert [job["trigger"] for job in jobs(ada)] == ["sweep"]
    assert aws.invoke("sweeper", sweep)["woken"] == 0


def test_a_turn_is_answered_where_the_queue_is_away(aws: World, ada: Client) -> None:
    aws.patch.setattr("tidemark.work.WorkQueue.send", _unavailable)
    ada.say(ada.conversation(), "I work at Acme.")


def _unavailable(*_: Any, **__: Any) -> None:
    raise ConnectionError


def test_a_wake_up_for_what_is_gone_is_no_failure(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    [(wake, _)] = aws.wakes()
    ada.send("DELETE", f"/v1/conversations/{conversation}")
    aws.clock.forward(minutes=2)
    assert aws.extract(wake, Wake(tenant_id="ten_x", conversation_id="cnv_x", trigger="sweep", due=now())) == []
    assert ada.memories() == []


def test_the_extractor_is_told_when_its_worker_ends(aws: World, ada: Client) -> None:
    told: list[datetime | None] = []

    class Slow:
        def extract(self, messages: object, known: object, deadline: datetime | None = None) -> list[Statement]:
            told.append(deadline)
            raise ModelUnavailableError("no answer in time")

    aws.patch.setattr(bootstrap, "extractor", lambda _: Slow())
    bootstrap.extraction.cache_clear()
    conversation = ada.conversation()
    ada.say(conversation, "I work at Acme.")
    [(wake, _)] = aws.wakes()
    aws.clock.forward(seconds=61)
    began = now()
    assert aws.extract(wake) == ["message-0"]
    [deadline] = told
    assert deadline is not None
    assert deadline < began + timedelta(milliseconds=aws.context.left)
    [job] = jobs(ada)
    assert (job["state"], job["reason"]) == ("failed", "ModelUnavailableError")
