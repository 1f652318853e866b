"""A short guided conversation: what the service is for, and the lines to repeat it."""

import json
import shlex
from typing import Any

import httpx

from infra.local.credentials import Credentials

SUBJECT = "guided-tour"
FIRST = "Remember this: my sister Ingrid lives in Bergen and I am allergic to peanuts."
SECOND = ("Where does my sister live?", "What am I allergic to?")


def show(credentials: Credentials, credentials_file: str, client: httpx.Client) -> None:
    """Whatever goes wrong is shown and ends only the tour."""
    print("\nA short guided conversation (TIDEMARK_TOUR=0 leaves it out)\n")
    try:
        _talk(credentials, client)
    except (httpx.HTTPError, KeyError, ValueError) as error:
        print(f"  The guided conversation stopped: {error}\n")
        return
    _print_curl(credentials, credentials_file)


def _talk(credentials: Credentials, client: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {credentials.api_key}"}
    query = {"external_subject_id": SUBJECT}

    def send(path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = client.post(path, headers=headers, json=body, **more)
        if not answer.is_success:
            raise ValueError(f"{path} answered {answer.status_code}: {answer.text[:300]}")
        found: dict[str, Any] = answer.json()
        return found

    for number, questions in enumerate(((FIRST,), SECOND), 1):
        conversation = send("/v1/conversations", {"external_subject_id": SUBJECT})["id"]
        print(f"  Conversation {number} ({conversation})")
        for question in questions:
            answer = send(f"/v1/conversations/{conversation}/messages", {"content": question}, params=query)
            recalled = "   [answered with memory]" if answer["metadata"]["memory_used"] else ""
            print(f"    you:      {question}\n    tidemark: {answer['message']['content']}{recalled}")
        print()


def _print_curl(credentials: Credentials, credentials_file: str) -> None:
    read = f"python3 -c \"import json; print(json.load(open({credentials_file!r}))['api_key'])\""
    post = 'curl -s -H "Authorization: Bearer $KEY" -H "Content-Type: application/json"'
    conversations = f"{credentials.base_url}/v1/conversations"
    conversation, question = json.dumps({"external_subject_id": SUBJECT}), json.dumps({"content": SECOND[0]})
    print("  To repeat it:\n")
    print(f"    KEY=$({read})")
    print(f"    {post} {conversations} -d {shlex.quote(conversation)}")
    print(f'    {post} "{conversations}/CONVERSATION_ID/messages?external_subject_id={SUBJECT}" -d {shlex.quote(question)}\n')
