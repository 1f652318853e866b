"""Every route of the served OpenAPI file, through the gateway and its authorizer, with every kind of token that must not open it."""

import time
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from infra.local.issuer import Issuer
from tests.e2e.local_stack import Stack
from tests.functional.test_deny_by_default import OPEN, example, named, required

pytestmark = pytest.mark.emulator


@pytest.fixture(scope="module")
def refused_tokens(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """A header value for each kind of token that is no token here."""
    tenant = stack.credentials["tenant_id"]
    good: dict[str, Any] = jwt.decode(stack.credentials["dashboard_token"], options={"verify_signature": False})
    ours = Issuer(stack.state / "issuer.pem", good["iss"], good["aud"])
    foreign = Issuer(tmp_path_factory.mktemp("foreign") / Path("issuer.pem"), good["iss"], good["aud"])
    with stack.client("dashboard_token") as admin:
        revoked = admin.post(f"/v1/tenants/{tenant}/api-keys", json={"name": "gone", "scopes": ["chat", "admin"]}).json()
        assert admin.delete(f"/v1/tenants/{tenant}/api-keys/{revoked['id']}").status_code == 204
    return {
        "missing": None,
        "no token": "Bearer nonsense",
        "another scheme": f"Basic {stack.credentials['api_key']}",
        "unknown key": "Bearer tm_0123456789abcdef0123456789abcdef0123456789abcdef",
        "revoked key": f"Bearer {revoked['secret']}",
        "expired": f"Bearer {ours.token('ada', 'admin', tenant, expires_in=-60)}",
        "foreign": f"Bearer {foreign.token('ada', 'admin', tenant)}",
        "unsigned": f"Bearer {jwt.encode({**good, 'exp': int(time.time()) + 60}, '', algorithm='none')}",
    }


KINDS = ["missing", "no token", "another scheme", "unknown key", "revoked key", "expired", "foreign", "unsigned"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_route_opens_for_it(stack: Stack, refused_tokens: dict[str, str | None], kind: str) -> None:
    token = refused_tokens[kind]
    served: list[tuple[str, str, int]] = []
    with httpx.Client(base_url=stack.base_url, timeout=60, trust_env=False) as client:
        paths = client.get("/openapi.json").json()["paths"]
        for path, item in paths.items():
            for method in item if path not in OPEN else ():
                body = example(method.upper(), path) if method in ("post", "put", "patch") else None
                headers = {"Authorization": token} if token else {}
                answer = client.request(method.upper(), named(path), json=body, params=required(path), headers=headers)
                told = answer.json()
                if (answer.status_code, told.get("error", told).get("code")) != (401, "unauthorized"):
                    served.append((method, path, answer.status_code))
    assert served == []
