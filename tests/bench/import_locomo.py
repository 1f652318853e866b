"""Imports LoCoMo conversations over HTTP as the command does, then searches them for the evidence of their questions.

    python -m tests.bench import_locomo DATA [--first N] [--credentials FILE]

DATA holds locomo/locomo_dev.json, which is not part of this repository. Needs a running stack (`make run`).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
from tidemark import cli

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
INDEX_SECONDS = 600
WINDOW = 16_000  # tokens; a conversation of 400 short turns is longer than its input budget


def turns(conversation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(dialogue id, message) in order; the first speaker is the user."""
    user = conversation["speaker_a"]
    found = []
    sessions = sorted(
        (int(name.split("_")[1]) for name, value in conversation.items() if name.startswith("session_") and isinstance(value, list))
    )
    for session in sessions:
        at = datetime.strptime(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{session}"]:
            shown = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            message = {
                "role": "user" if turn["speaker"] == user else "assistant",
                "name": turn["speaker"],
                "content": turn["text"] + shown,
                "created_at": at.isoformat(),
            }
            found.append((turn["dia_id"], message))
    return found


def wait_for_index(search: Callable[[str], list[Any]], last: tuple[str, str]) -> float:
    """Seconds until the last message is found by its own words."""
    started = time.monotonic()
    while last[0] not in [one["message_id"] for one in search(last[1])]:
        if time.monotonic() - started > INDEX_SECONDS:
            raise SystemExit("The index did not follow.")
        time.sleep(1)
    return time.monotonic() - started


def run(sample: dict[str, Any], where: cli.Access) -> dict[str, list[float]]:
    """One conversation: imported, compacted by the next turn, searched. Recall of each question by category."""
    spoken = turns(sample["conversation"])
    subject = f"bench-{sample['sample_id']}-{uuid4().hex[:6]}"
    client = httpx.Client(base_url=where.url, headers={"Authorization": f"Bearer {where.token}"}, timeout=120, trust_env=False)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.jsonl"
        file.write_text("\n".join(json.dumps(message) for _, message in spoken), encoding="utf-8")
        config = {"context_window": WINDOW}
        agent = client.post("/v1/agents", json={"name": "Bench", "enable_memory": True, "context_compression_config": config})
        wanted = {"external_subject_id": subject, "agent_id": agent.raise_for_status().json()["id"]}
        made = client.post("/v1/conversations", json=wanted).raise_for_status().json()["id"]
        options = cli.parser().parse_args(["import", str(file), "--subject", subject, "--conversation", made])
        started = time.monotonic()
        conversation = cli.import_file(options, where, sys.stderr)
        seconds = time.monotonic() - started
    query = {"external_subject_id": subject}
    ids: list[str] = []
    more: dict[str, str] = {}
    while True:
        page = client.get(f"/v1/conversations/{conversation}/messages", params={**query, "limit": "100", **more}).raise_for_status().json()
        ids += [one["id"] for one in page["items"]]
        if not page["next_cursor"]:
            break
        more = {"cursor": page["next_cursor"]}
    if len(ids) != len(spoken):
        raise SystemExit(f"{len(ids)} messages are there of {len(spoken)}")

    def search(words: str) -> list[Any]:
        body = {"query": words, "sources": ["messages"], "top_k": 10}
        found: list[Any] = client.post("/v1/memories/search", params=query, json=body).raise_for_status().json()["messages"]
        return found

    indexed = wait_for_index(search, (ids[-1], spoken[-1][1]["content"]))
    by_dialogue = dict(zip((dialogue for dialogue, _ in spoken), ids, strict=True))
    recalls: dict[str, list[float]] = {}
    times: list[float] = []
    for question in sample["qa"]:
        evidence = {by_dialogue[one] for one in question.get("evidence", []) if one in by_dialogue}
        if question["category"] not in CATEGORIES or not evidence:
            continue
        asked = time.monotonic()
        found = {one["message_id"] for one in search(question["question"])}
        times.append(time.monotonic() - asked)
        recalls.setdefault(CATEGORIES[question["category"]], []).append(len(evidence & found) / len(evidence))
    turn = client.post(
        f"/v1/conversations/{conversation}/messages", params=query, json={"content": "Where did we stop?"}
    ).raise_for_status()
    every = [one for some in recalls.values() for one in some]
    print(
        f"{sample['sample_id']}: {len(spoken)} turns imported in {seconds:.1f} s, searchable {indexed:.0f} s later;"
        f" compacted on the next turn: {turn.json()['metadata']['compacted']};"
        f" recall@10 {100 * mean(every):.1f}% of {len(every)} questions, {1000 * mean(times):.0f} ms each"
    )
    return recalls


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="import_locomo", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--first", type=int, default=1, help="how many conversations")
    parser.add_argument("--credentials", type=Path, default=Path(".local/credentials.json"))
    options = parser.parse_args(arguments)
    file = options.data / "locomo" / "locomo_dev.json"
    if not file.exists():
        print(f"skipped: there is no {file}")
        return
    if not options.credentials.exists():
        print(f"skipped: no running stack wrote {options.credentials}")
        return
    stored = json.loads(options.credentials.read_text(encoding="utf-8"))
    where = cli.Access(stored["base_url"], stored["api_key"])
    total: dict[str, list[float]] = {}
    for sample in json.loads(file.read_text(encoding="utf-8"))[: options.first]:
        for category, found in run(sample, where).items():
            total.setdefault(category, []).extend(found)
    for category, found in sorted(total.items()):
        print(f"  {category}: {100 * mean(found):.1f}% of {len(found)}")


if __name__ == "__main__":
    main()
