"""Section H of the reports: what waits for a model, and what gets stuck. Each test names its case."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

from tidemark import bootstrap, clock
from tidemark.conversations.requests import TurnBody
from tidemark.models.ports import ModelRequest, ModelResponse, TextDelta
from tidemark.storage import keys
from tidemark.storage.leases import lease

from tests.support.fast_moto import one_call_at_a_time
from tests.support.models import ScriptedModel
from tests.support.permissions import RESOURCES
from tests.support.world import Client, World, use

WAITING = 12  # more than the connections that a client of AWS keeps


class Waiting(ScriptedModel):
    """Answers only when all have asked and somebody let them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_all, self.go_on = Barrier(WAITING + 1, timeout=60), Barrier(WAITING + 1, timeout=60)

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        self.asked_all.wait()
        self.go_on.wait()
        yield from super().stream(request)


def test_case_139_turns_that_wait_for_the_model_hold_nothing_that_others_need(aws: World, ada: Client) -> None:
    model = Waiting()
    use(aws.patch, "model", model)
    one_call_at_a_time(aws.patch)
    conversation = ada.conversation()
    caller = ada.caller.model_copy(update={"external_subject_id": "ada"})
    turns, deadline = bootstrap.turns(), clock.now() + timedelta(minutes=5)
    with ThreadPoolExecutor(WAITING) as pool:
        waiting = [pool.submit(turns.answer, caller, conversation, TurnBody(content=f"{number}"), deadline) for number in range(WAITING)]
        model.asked_all.wait()
        ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "meanwhile"}]})
        assert ada.patch(f"/v1/conversations/{conversation}", {"title": "changed"})["title"] == "changed"
        ada.post("/v1/memories/entities", {"name": "tea", "entity_type": "concept"})
        model.go_on.wait()
        answers = {one.result().message.parent_id for one in waiting}
    told = ada.messages(conversation)
    assert len(answers) == WAITING
    assert told[0]["content"] == "meanwhile"
    assert [one["role"] for one in told[1:]] == ["user", "assistant"] * WAITING
    assert [one["created_at"] for one in told] == sorted(one["created_at"] for one in told)


def test_case_140_a_wedged_worker_is_replaced_and_a_poisoned_message_ends_in_the_dead_letters(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I live in Bergen.")
    key = keys.extraction_lease(ada.caller.tenant_id, conversation)
    wedged = lease(key, timedelta(minutes=6))
    assert wedged.__enter__()
    aws.clock.forward(hours=1)
    [body] = [body for body, _ in aws.queued() if '"trigger"' in body]
    assert aws.deliver([body]) == []  # its time ran out an hour ago
    assert ada.walk("/v1/extractions")[0]["state"] == "completed"

    queue = RESOURCES["ExtractionQueue"]["Properties"]
    function = RESOURCES["ExtractionFunction"]["Properties"]
    assert 1 < queue["RedrivePolicy"]["maxReceiveCount"] <= 10
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["ExtractionDeadLetterQueue", "Arn"]}
    assert 0 < function["Timeout"] <= 900
    assert function["Events"]["Queue"]["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
