"""The local stack itself: what a person or a script at the terminal meets."""

import json
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.local_stack import COMMAND, ROOT, Stack, free_port, launch, wait_until

pytestmark = pytest.mark.emulator


def assert_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["request_id"] == answer.headers["x-request-id"]


def test_health_answers_without_a_token(stack: Stack) -> None:
    with stack.client(None) as client:
        assert client.get("/health").status_code == 200


def test_credentials_are_complete_and_private(stack: Stack) -> None:
    assert set(stack.credentials) == {"base_url", "tenant_id", "api_key", "dashboard_token", "platform_admin_token"}
    assert stack.credentials["base_url"] == stack.base_url
    assert stat.S_IMODE((stack.state / "credentials.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("token", [None, "tm_no_such_key", "a.b.c"])
def test_a_request_without_a_good_token_is_a_problem(stack: Stack, token: str | None) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with stack.client(None) as client:
        assert_problem(client.get("/v1/conversations", headers=headers), 401, "unauthorized")


def test_a_token_of_another_issuer_is_refused(stack: Stack) -> None:
    claims = jwt.decode(stack.credentials["dashboard_token"], options={"verify_signature": False})
    kid = jwt.get_unverified_header(stack.credentials["dashboard_token"])["kid"]
    forged = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": kid})
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": kid})
    with stack.client(None) as client:
        for token in (forged, unsigned):
            assert_problem(client.get("/v1/conversations", headers={"Authorization": f"Bearer {token}"}), 401, "unauthorized")


def test_an_expired_token_is_refused(stack: Stack) -> None:
    token = stack.dashboard_token(sub="passing", role="admin", tenant_id=stack.credentials["tenant_id"], expires_in=1)
    expires: int = jwt.decode(token, options={"verify_signature": False})["exp"]
    # Not used before: the gateway would keep the authorizer's answer for its 30 s.
    wait_until(lambda: time.time() > expires)
    with stack.client(None) as client:
        assert_problem(client.get("/v1/conversations", headers={"Authorization": f"Bearer {token}"}), 401, "unauthorized")


def test_local_tokens_open_the_tenant(stack: Stack) -> None:
    token = stack.dashboard_token(sub="ada", role="member", tenant_id=stack.credentials["tenant_id"])
    with stack.client(None) as client:
        assert client.get("/v1/conversations", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"role": "owner"},
        {"tenant_id": "ten_missing"},
        {"tenant_id": None},
        {"expires_in": 0},
        {"expires_in": "60"},
        {"extra": 1},
        {"sub": ""},
    ],
)
def test_local_tokens_refuse_what_they_do_not_know(stack: Stack, change: dict[str, object]) -> None:
    wanted = {"sub": "ada", "role": "admin", "tenant_id": stack.credentials["tenant_id"]} | change
    assert_problem(httpx.post(f"{stack.origin}/local/tokens", json=wanted, trust_env=False), 422, "validation_failed")


@pytest.mark.parametrize("path", ["/v1/no-such-route", "/v1/conversations/../../../../_ministack/health", "/"])
def test_an_unknown_path_is_our_problem(stack: Stack, path: str) -> None:
    connection = httpx.URL(stack.base_url)
    # By hand: every client library resolves the dots before it sends them.
    request = (
        f"GET /api{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {stack.credentials['api_key']}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", connection.port or 80), timeout=60) as raw:
        raw.sendall(request.encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404")
    assert json.loads(body)["code"] in ("route_not_found", "not_found")


def test_a_method_that_a_path_does_not_serve_is_our_problem(stack: Stack) -> None:
    with stack.client() as client:
        assert_problem(client.put("/v1/conversations", json={}), 404, "route_not_found")


def test_a_body_over_five_megabytes_is_refused(stack: Stack) -> None:
    with stack.client() as client:
        assert_problem(client.post("/v1/conversations", content=b"x" * (5 * 1024 * 1024 + 1)), 413, "payload_too_large")


def test_a_preflight_needs_no_token(stack: Stack) -> None:
    wanted = {
        "Origin": stack.origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "Authorization, Idempotency-Key",
    }
    with stack.client(None) as client:
        answer = client.options("/v1/conversations", headers=wanted)
    assert answer.is_success
    assert answer.headers["access-control-allow-origin"] == stack.origin


def test_pages_of_the_root_are_redirected(stack: Stack) -> None:
    for path in ("/", "/console", "/docs"):
        answer = httpx.get(f"{stack.origin}{path}", trust_env=False)
        assert answer.headers["location"].startswith("/api/")


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = launch(tmp_path, port)
        assert process.wait(60) != 0
    assert f"Port {port} is taken" in (tmp_path / "output.txt").read_text()


def test_a_second_instance_on_the_same_state_is_refused(stack: Stack, tmp_path: Path) -> None:
    environment = {"TIDEMARK_PORT": str(free_port()), "TIDEMARK_STATE_DIR": str(stack.state), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(  # noqa: S603
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode != 0
    assert "Another instance runs on" in ran.stderr


def test_what_was_stored_is_there_after_every_kind_of_end(instances: Callable[..., Stack]) -> None:
    first = instances()
    credentials = first.credentials
    known = [_conversation(first)]
    assert first.stop() == 0
    second = instances()
    known.append(_conversation(second))
    second.kill_emulator()
    assert second.process.wait(60) != 0
    third = instances()
    known.append(_conversation(third))
    third.process.send_signal(signal.SIGKILL)
    third.process.wait(60)
    fourth = instances()
    assert {name: fourth.credentials[name] for name in ("tenant_id", "api_key")} == {
        name: credentials[name] for name in ("tenant_id", "api_key")
    }
    with fourth.client() as client:
        for conversation in known:
            assert client.get(f"/v1/conversations/{conversation}", params={"external_subject_id": "ada"}).status_code == 200


def test_two_instances_run_side_by_side(stack: Stack, instances: Callable[..., Stack]) -> None:
    other = instances("other")
    with stack.client() as mine, other.client() as theirs:
        assert mine.get("/v1/conversations").status_code == 200
        assert theirs.get("/v1/conversations").status_code == 200
    with other.client(None) as client:
        foreign = {"Authorization": f"Bearer {stack.credentials['api_key']}"}
        assert_problem(client.get("/v1/conversations", headers=foreign), 401, "unauthorized")


def _conversation(stack: Stack) -> str:
    with stack.client() as client:
        answer = client.post("/v1/conversations", json={"external_subject_id": "ada"})
        assert answer.status_code == 201, answer.text
        identifier: str = answer.json()["id"]
        return identifier
