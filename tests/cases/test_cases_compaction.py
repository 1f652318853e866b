"""Section G of the reports, what of it takes more than a few turns to show: each test names its case."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.conversations.requests import CompactBody
from tidemark.models import tokenizer
from tidemark.models.bedrock import BedrockModel, BedrockOptions
from tidemark.models.ports import (
    ModelContextTooLongError,
    ModelError,
    ModelMalformedError,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelThrottledError,
    ModelUnavailableError,
    TextDelta,
    ToolCall,
    complete,
)
from tidemark.storage.leases import held
from tidemark.storage.table import Key

from tests.support.fast_moto import one_call_at_a_time
from tests.support.models import HashEmbedder, ScriptedModel
from tests.support.windows import compactions, small
from tests.support.world import Client, World, use, world

LOOK = [{"name": "look"}]


def bring(client: Client, conversation: str, texts: list[str]) -> list[str]:
    """Imports texts of user and assistant in turn; their ids."""
    found: list[str] = []
    for start in range(0, len(texts), 100):
        batch = texts[start : start + 100]
        messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(batch)]
        found += client.post(f"/v1/conversations/{conversation}/import", {"messages": messages})["message_ids"]
    return found


def well_formed(request: ModelRequest) -> bool:
    """What providers insist on: each call is followed by its result at once, and no result stands without its call."""
    open_calls: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        open_calls += [call.id for call in message.tool_calls]
    return not open_calls


def look(client: Client, model: ScriptedModel, conversation: str, text: str, results: list[str], **arguments: Any) -> Any:
    """One turn with one round of calls: its question, and the answers of the tool."""
    asked = [ToolCall(id=f"{text[:4]}-{place}", name="look", arguments=arguments) for place in range(len(results))]
    model.enqueue(asked)
    client.say(conversation, text, tools=LOOK, memory="off")
    answers = [{"tool_call_id": call.id, "content": content} for call, content in zip(asked, results, strict=True)]
    return client.post(f"/v1/conversations/{conversation}/messages", {"tool_results": answers, "tools": LOOK, "memory": "off"})


@pytest.mark.parametrize("tail", [0, 60, 110, 160, 210, 300])
def test_case_099_wherever_the_tail_would_end_a_round_is_on_one_side_and_nothing_stands_twice(
    aws: World, model: ScriptedModel, ada: Client, tail: int
) -> None:
    conversation = small(aws, ada, tail_max_tokens=tail)
    for number in range(10):
        look(
            ada,
            model,
            conversation,
            f"n{number}: look at the harbour " * 6,
            [f"{number}.{place} a pier and boats " * 5 for place in range(3)],
        )
    told = ada.messages(conversation)
    place = {one["id"]: number for number, one in enumerate(told)}
    spans = [(place[one["from_message_id"]], place[one["to_message_id"]]) for one in compactions(ada, conversation)[::-1]]
    assert spans
    assert [first for first, _ in spans] == [0, *[last + 1 for _, last in spans[:-1]]]
    assert not [last for _, last in spans if told[last + 1]["role"] == "tool"]
    for request in model.of("turn"):
        assert well_formed(request)
        words = [message.content for message in request.messages if message.role in ("user", "tool")]
        assert len(words) == len(set(words))


@pytest.mark.parametrize(("results", "tail"), [(1, 60), (4, 60), (4, 45)])
def test_case_100_a_limit_that_ends_behind_the_call_leaves_its_output_out(
    aws: World, model: ScriptedModel, ada: Client, results: int, tail: int
) -> None:
    conversation = small(aws, ada, tail_max_tokens=tail)
    ada.patch(f"/v1/conversations/{conversation}/context/preferences", {"keep_user_chars": 0})
    answer = look(ada, model, conversation, "Look at the harbour.", ["a pier"] * results, where="the long pier " * (360 // results))
    ada.say(conversation, "And now? " * 200, memory="off")
    [record] = compactions(ada, conversation)
    assert record["replaced_count"] == 2 + results
    assert [message.content for message in model.of("turn")[-1].messages] == [answer["message"]["content"], "And now? " * 200]


class Reasoning(ScriptedModel):
    """Says what it is about to do beside its calls."""

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        *_, response = super().stream(request)
        assert isinstance(response, ModelResponse)
        text = f"Let me look with {response.tool_calls[0].id}." if response.tool_calls else response.text
        yield TextDelta(text=text)
        yield response.model_copy(update={"text": text})


def test_case_101_in_a_turn_with_open_rounds_the_tail_starts_before_its_calls_and_their_reasons(aws: World, ada: Client) -> None:
    model = Reasoning("Noted.")
    use(aws.patch, "model", model)
    conversation = small(aws, ada, tail_max_tokens=0)
    bring(ada, conversation, [f"{number}: the long pier of the harbour " * 10 for number in range(16)])
    model.enqueue([ToolCall(id="a", name="look")], [ToolCall(id="b", name="look")])
    ada.say(conversation, "Look twice.", tools=LOOK, memory="off")
    for name in ("a", "b"):
        body = {"tool_results": [{"tool_call_id": name, "content": f"{name} shows the pier " * 50}], "tools": LOOK, "memory": "off"}
        ada.post(f"/v1/conversations/{conversation}/messages", body)
    [record] = compactions(ada, conversation)
    ids = [one["id"] for one in ada.messages(conversation)]
    assert ids.index(record["to_message_id"]) < 16
    assert not [request for request in model.of("summary") if "Look twice." in str(request) or "Let me look" in str(request)]
    last = model.of("turn")[-1]
    assert last.summary is not None
    told = [message.content for message in last.messages][-5:]
    assert told == ["Look twice.", "Let me look with a.", "a shows the pier " * 50, "Let me look with b.", "b shows the pier " * 50]
    assert well_formed(last)


FAILURES = [ModelUnavailableError(), ModelThrottledError(), ModelContextTooLongError(), ModelMalformedError("no JSON"), "", "  "]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_case_113_a_summary_that_fails_is_tried_three_times_a_turn_and_its_error_enters_nothing(
    aws: World, model: ScriptedModel, ada: Client, failure: ModelError | str
) -> None:
    aws.patch.setattr("tidemark.conversations.summary.PAUSE_SECONDS", 0.0)
    conversation = small(aws, ada, context_window=8000)
    path = f"/v1/conversations/{conversation}/context"
    ada.patch(f"{path}/preferences", {"autocompact_pct": 0.5})
    while (before := ada.get(path))["total_tokens"] < before["trigger_budget"]:
        bring(ada, conversation, ["the long pier of the harbour " * 10])
    for number in range(3):
        model.enqueue(*[failure] * 3, purpose="summary")
        assert ada.say(conversation, f"turn {number}", memory="off")["metadata"]["compacted"] is False
    assert len(model.of("summary")) == 9
    model.enqueue("Record: harbours.", purpose="summary")
    assert ada.say(conversation, "and now?", memory="off")["metadata"]["compacted"] is True
    told = ada.messages(conversation)
    notices = {one["content"] for one in told if one["role"] == "notice"}
    assert [one["tokens"] for one in told if one["role"] == "notice"] == [0] * 3
    assert not [request for request in model.asked if any(notice in str(request) for notice in notices)]
    said = [message for request in model.of("turn") for message in request.messages if message.role == "assistant"]
    assert {message.content for message in said} <= {"Understood."}
    assert ada.get(path)["total_tokens"] < before["trigger_budget"]


rounds = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 60), st.booleans()), min_size=6, max_size=16)


@given(history=rounds)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_case_104_no_random_history_leaves_a_request_that_a_provider_refuses(tmp_path_factory: Any, history: Any) -> None:
    folder: Path = tmp_path_factory.mktemp("world")
    with world(folder) as aws:
        model = ScriptedModel(default="Noted.")
        use(aws.patch, "model", model)
        use(aws.patch, "embedder", HashEmbedder())
        client = aws.key(aws.tenant(), "ada")
        conversation = small(aws, client, tail_max_tokens=400)
        for number, (calls, words, by_hand) in enumerate(history):
            text = f"{number}: " + "look at the long pier " * words
            if calls:
                asked = [ToolCall(id=f"c{number}-{place}", name="look") for place in range(calls)]
                model.enqueue(asked)
                client.say(conversation, text, tools=LOOK, memory="off")
                if by_hand:
                    client.post(f"/v1/conversations/{conversation}/compact", {})
                results = [{"tool_call_id": call.id, "content": "a pier " * words} for call in asked]
                client.post(f"/v1/conversations/{conversation}/messages", {"tool_results": results, "tools": LOOK, "memory": "off"})
            else:
                client.say(conversation, text, memory="off")
        room = client.get(f"/v1/conversations/{conversation}/context")["input_budget"]
        for request in model.of("turn"):
            assert well_formed(request)
            assert tokenizer.count_request(request) <= room


class Slow(ScriptedModel):
    """Writes its summary when it is told to."""

    def __init__(self) -> None:
        super().__init__(default="Noted.")
        self.asked_for_summary, self.go_on = threading.Event(), threading.Event()

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        if request.purpose == "summary":
            self.asked_for_summary.set()
            assert self.go_on.wait(20)
        yield from super().stream(request)


def test_case_108_one_summary_is_written_however_many_ask_and_all_get_it(aws: World, ada: Client) -> None:
    model = Slow()
    use(aws.patch, "model", model)
    conversation = small(aws, ada)
    bring(ada, conversation, [f"{number}: the long pier of the harbour " * 10 for number in range(8)])
    ada.get(f"/v1/conversations/{conversation}/context")  # everything is built before threads share it
    one_call_at_a_time(aws.patch)
    # to the service itself: a resolver of Powertools keeps its request in its class, and serves no two threads
    caller = ada.caller.model_copy(update={"external_subject_id": "ada"})
    asked = (caller, conversation, CompactBody(), now() + timedelta(seconds=60))
    waiting = threading.Barrier(3)
    seen = threading.local()

    def watched(key: Key) -> bool:
        if not getattr(seen, "waits", False):
            seen.waits = True
            waiting.wait(20)
        return held(key)

    aws.patch.setattr("tidemark.conversations.compaction.held", watched)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(bootstrap.context().compact, *asked)
        assert model.asked_for_summary.wait(20)
        others = [pool.submit(bootstrap.context().compact, *asked) for _ in range(2)]
        waiting.wait(20)
        model.go_on.set()
        answers = [one.result() for one in (first, *others)]
    assert len(model.of("summary")) == 1
    assert {answer.compaction.id for answer in answers if answer.compaction} == {one["id"] for one in compactions(ada, conversation)}
    assert all(answer.compacted for answer in answers)


def test_case_108_summaries_are_folded_into_one_in_front_of_the_tail(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = small(aws, ada)
    trigger = ada.get(f"/v1/conversations/{conversation}/context")["trigger_budget"]
    for number in range(40):
        model.enqueue(f"Record {number}.", purpose="summary")
        ada.say(conversation, f"{number}: " + "and the long pier of the harbour " * 12, memory="off")
    records = compactions(ada, conversation)
    assert len(records) >= 3
    assert [one["previous_compaction_id"] for one in records] == [*[one["id"] for one in records[1:]], None]
    assert all(one["after_tokens"] <= trigger * 7 // 10 for one in records)
    sent = model.of("turn")[-1]
    assert sent.summary is not None
    assert records[0]["summary"] in sent.summary
    assert all(one["summary"] not in str(sent) for one in records[1:])


def test_case_114_a_history_far_over_the_window_is_summarised_in_parts_that_fit(aws: World, ada: Client) -> None:
    model = ScriptedModel(default="Record so far.", window=4000)
    use(aws.patch, "model", model)
    conversation = small(aws, ada)
    texts = [f"fact {number} of the harbour: " + "and the long pier " * (10 + number % 7 * 40) for number in range(150)]
    bring(ada, conversation, texts)
    assert ada.get(f"/v1/conversations/{conversation}/context")["total_tokens"] > 5 * 4000
    answer = ada.post(f"/v1/conversations/{conversation}/compact", {})
    assert answer["compacted"] is True
    asked = model.of("summary")
    assert len(asked) > 5
    read = [message.content for request in asked for message in request.messages]
    replaced = texts[: answer["compaction"]["replaced_count"]]
    assert "".join(read) == "".join(replaced)
    assert all(request.summary for request in asked[1:])
    assert ada.say(conversation, "Shall we go on?", memory="off")["message"]["content"] == "Record so far."


def test_case_114_one_message_over_the_window_is_summarised_in_parts(aws: World, ada: Client) -> None:
    model = ScriptedModel(default="Record so far.", window=4000)
    use(aws.patch, "model", model)
    conversation = small(aws, ada)
    ada.patch(f"/v1/conversations/{conversation}/context/preferences", {"keep_user_chars": 0})
    long = "the long pier of the harbour and all of its boats, " * 1500
    bring(ada, conversation, ["good morning", "good morning", long, "noted"])
    ada.say(conversation, "Shall we go on?", memory="off")
    read = "".join(message.content for request in model.of("summary") for message in request.messages)
    assert long in read


@pytest.mark.parametrize("keep", [0, 2000])
def test_case_118_the_summary_stands_before_the_tail_and_covers_what_lies_before_it(
    aws: World, model: ScriptedModel, ada: Client, keep: int
) -> None:
    conversation = small(aws, ada)
    ada.patch(f"/v1/conversations/{conversation}/context/preferences", {"keep_user_chars": keep})
    model.enqueue(*[f"Record {number}." for number in range(9)], purpose="summary")
    for number in range(25):
        ada.say(conversation, f"{number}: " + "and the long pier of the harbour " * 12, memory="off")
    ids = [one["id"] for one in ada.messages(conversation)]
    newest = compactions(ada, conversation)[0]
    covered, behind = ids[: (end := ids.index(newest["to_message_id"]) + 1)], ids[end:]
    frame = ada.walk(f"/v1/conversations/{conversation}/context/frames")[0]
    stood = [item for item in frame["items"] if item["kind"] in ("summary", "message")]
    assert [item["kind"] for item in stood] == ["summary", *["message"] * (len(stood) - 1)]
    assert stood[0]["source_id"] == newest["id"]
    kept = [item["source_id"] for item in stood if item["reason"] == "kept_user_words"]
    assert bool(kept) == bool(keep)
    assert set(kept) <= set(covered)
    assert [item["source_id"] for item in stood[1 + len(kept) :]] == behind[:-1]  # the answer came after
    request = model.of("turn")[-1]
    assert newest["summary"] in (request.summary or "")
    assert newest["summary"] not in str(request.messages) + request.system


def test_case_119_signed_reasoning_is_dropped_whole_and_never_edited() -> None:
    class Runtime:
        def converse(self, **_: Any) -> Any:
            reasoning = {"reasoningContent": {"reasoningText": {"text": "Secretly I think.", "signature": "c2lnbmVk"}}}
            content = [reasoning, {"text": "The pier is long."}]
            return {"stopReason": "end_turn", "usage": {}, "output": {"message": {"role": "assistant", "content": content}}}

        def converse_stream(self, **_: Any) -> Any:
            return {"stream": self.pieces()}

        @staticmethod
        def pieces() -> Iterator[Any]:
            yield from (
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Secretly I think."}}}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2lnbmVk"}}}},
                {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "The pier is long."}}},
                {"messageStop": {"stopReason": "end_turn"}},
            )

    model = BedrockModel(lambda *_: Runtime(), BedrockOptions())
    said = ModelMessage(role="user", content="How long is it?")
    answer = complete(model, ModelRequest(purpose="turn", model_id="anthropic.claude-x", messages=(said,), max_tokens=100))
    assert answer.text == "The pier is long."


@pytest.mark.parametrize(
    "text",
    [
        "你好世界" * 25,
        "港の桟橋はとても長くて、船は三隻ありました。",
        "𠀀𠮷𩸽𪚥" * 10,
        "🌊🏴‍☠️👩‍👩‍👧‍👦" * 10,
        "def f(x):\n    return {k: v for k, v in x.items() if v is not None}\n" * 5,
        "ሰላም ዓለም نص عربي טקסט بدون",
    ],
)
def test_case_120_no_script_is_counted_under(ada: Client, text: str) -> None:
    conversation = ada.conversation()
    bring(ada, conversation, [text])
    counted = ada.messages(conversation)[0]["tokens"]
    real = len(tokenizer.encoding().encode_ordinary(text))
    assert real < counted <= real + 8
    assert counted > len(text) / 4 or text.isascii()


def test_case_122_the_summary_speaks_the_language_of_the_conversation(aws: World, ada: Client) -> None:
    conversation = small(aws, ada)
    said = ["我们的泊位是C-27号，船长叫Brandvold。", "好的，记下了。", "我们决定九月十四日出发。", "明白。"]
    bring(ada, conversation, [*said, *["今天的风很大，我们走得很慢，路上没有什么特别的事情。" * 4] * 16])
    summary = ada.post(f"/v1/conversations/{conversation}/compact", {})["compaction"]["summary"]
    letters = [character for character in summary if character.isalpha()]
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in letters)
    assert chinese > len(letters) / 2
    assert "C-27" in summary
    assert "Brandvold" in summary


def test_case_122_a_model_is_told_to_keep_language_and_names(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = small(aws, ada)
    bring(ada, conversation, ["我们的泊位是C-27号。" * 20] * 10)
    ada.post(f"/v1/conversations/{conversation}/compact", {})
    system = model.of("summary")[0].system
    assert "language of the conversation" in system
    assert "exactly as written" in system


def test_a_compaction_by_hand_gives_up_before_its_worker_is_stopped(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = small(aws, ada)
    bring(ada, conversation, [f"{number}: the long pier of the harbour " * 10 for number in range(12)])
    ada.post(f"/v1/conversations/{conversation}/compact", {})
    ends = model.of("summary")[0].deadline
    assert ends is not None
    assert (ends - aws.clock.now(ends.tzinfo)).total_seconds() < aws.context.left / 1000 - 2
