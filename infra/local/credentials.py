"""A tenant, a key and tokens to start with, made through the HTTP API as any administrator would."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from infra.local.issuer import Issuer, write_secret
from infra.local.progress import Failure

SCOPES = ["chat", "memory:read", "memory:write", "admin"]


@dataclass(frozen=True)
class Credentials:
    base_url: str
    tenant_id: str
    api_key: str
    dashboard_token: str
    platform_admin_token: str


def prepare(path: Path, base_url: str, issuer: Issuer, client: httpx.Client) -> Credentials:
    """What an earlier start wrote is kept while the tenant exists and the key works; tokens are renewed every time."""
    platform = issuer.token("local-platform-administrator", "platform")
    tenant_id, api_key = _earlier(path)
    if not tenant_id or client.get(f"/v1/tenants/{tenant_id}", headers=_bearer(platform)).status_code != 200:
        tenant_id, api_key = _send(client, "POST", "/v1/tenants", platform, {"name": "Local"})["id"], ""
        admin = issuer.token("local-administrator", "admin", tenant_id)
        _send(client, "PATCH", f"/v1/tenants/{tenant_id}/memory-settings", admin, {"mode": "durable", "retention": "automatic"})
    admin = issuer.token("local-administrator", "admin", tenant_id)
    if not api_key or client.get("/v1/conversations", params={"limit": 1}, headers=_bearer(api_key)).status_code != 200:
        made = _send(client, "POST", f"/v1/tenants/{tenant_id}/api-keys", platform, {"name": "Local", "scopes": SCOPES})
        api_key = made["secret"]
    credentials = Credentials(base_url, tenant_id, api_key, admin, platform)
    write_secret(path, json.dumps(asdict(credentials), indent=2) + "\n")
    return credentials


def _earlier(path: Path) -> tuple[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return str(found["tenant_id"]), str(found["api_key"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _send(client: httpx.Client, method: str, path: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.request(method, path, headers=_bearer(token), json=body)
    if not answer.is_success:
        raise Failure(f"{method} {path} answered {answer.status_code}: {answer.text[:500]}")
    made: dict[str, Any] = answer.json()
    return made
