"""Tenants, keys, roles, settings, knowledge bases, agents; and the authorizer in front of them all."""

import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tidemark import bootstrap
from tidemark.tenancy.authentication import Authentication
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.tokens import DashboardTokens

from tests.support import events
from tests.support.world import Client, World, use

ISSUER, AUDIENCE = "https://issuer.example", "tidemark"


def authorized(aws: World, header: str | None) -> Caller | None:
    """Whom the authorizer lets through."""
    try:
        answer = aws.invoke("authorizer", events.authorizer(header))
    except Exception as exc:  # noqa: BLE001 - the handler has no other kind
        assert str(exc) == "Unauthorized"  # noqa: PT017 - what API Gateway takes for a 401
        return None
    return Caller.model_validate_json(answer["context"]["caller"])


# API keys
def test_a_key_opens_its_tenant_until_it_is_revoked(aws: World) -> None:
    tenant = aws.tenant()
    admin = aws.user(tenant)
    key = admin.post(f"/v1/tenants/{tenant}/api-keys", {"name": "server", "scopes": ["chat", "memory:read"]})
    caller = authorized(aws, f"Bearer {key['secret']}")
    assert caller is not None
    assert (caller.tenant_id, set(caller.scopes)) == (tenant, {"chat", "memory:read"})
    [listed] = admin.walk(f"/v1/tenants/{tenant}/api-keys")
    assert listed["last_used_at"] is not None
    assert "secret" not in listed
    assert key["secret"].startswith(listed["prefix"])
    admin.delete(f"/v1/tenants/{tenant}/api-keys/{key['id']}")
    assert authorized(aws, f"Bearer {key['secret']}") is None
    assert admin.walk(f"/v1/tenants/{tenant}/api-keys")[0]["revoked_at"] is not None
    assert admin.refused("DELETE", f"/v1/tenants/{tenant}/api-keys/{key['id']}") == (404, "not_found")


def test_a_key_ends_at_its_time(aws: World) -> None:
    tenant = aws.tenant()
    admin = aws.user(tenant)
    body = {"name": "short", "scopes": ["chat"], "expires_at": "2999-01-01T00:00:00Z"}
    key = admin.post(f"/v1/tenants/{tenant}/api-keys", body)
    assert authorized(aws, f"Bearer {key['secret']}") is not None
    aws.clock.forward(days=400_000)
    assert authorized(aws, f"Bearer {key['secret']}") is None
    past = admin.send("POST", f"/v1/tenants/{tenant}/api-keys", body | {"expires_at": "2020-01-01T00:00:00Z"})
    assert (past.status, past.code) == (422, "validation_failed")


@pytest.mark.parametrize(
    "change",
    [lambda key: key[:-1] + ("a" if key[-1] != "a" else "b"), lambda key: key[:16], lambda key: key + "a", lambda key: key.upper()],
)
def test_nearly_a_key_is_no_key(aws: World, change: Any) -> None:
    tenant = aws.tenant()
    secret = aws.user(tenant).post(f"/v1/tenants/{tenant}/api-keys", {"name": "k", "scopes": ["chat"]})["secret"]
    assert authorized(aws, f"Bearer {change(secret)}") is None


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "tm_abc", "Bearer tm_", "Bearer a b", "Bearer  tm_x"])
def test_a_header_that_is_no_bearer_token_is_refused(aws: World, header: str | None) -> None:
    assert authorized(aws, header) is None


def test_a_scheme_is_read_in_any_case(aws: World) -> None:
    tenant = aws.tenant()
    secret = aws.user(tenant).post(f"/v1/tenants/{tenant}/api-keys", {"name": "k", "scopes": ["chat"]})["secret"]
    assert authorized(aws, f"bearer {secret}") is not None


# dashboard tokens
class PublishedKeys:
    """The issuer's keys, as PyJWKClient would fetch them."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key.public_key()

    def get_signing_key_from_jwt(self, token: str) -> ec.EllipticCurvePublicKey:
        jwt.get_unverified_header(token)
        return self._key


@pytest.fixture
def issuer(aws: World) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    tokens = DashboardTokens(ISSUER, AUDIENCE, "https://issuer.example/jwks.json")
    vars(tokens)["_keys"] = PublishedKeys(key)
    api_keys = bootstrap.api_keys()
    use(aws.patch, "authentication", Authentication(api_keys, tokens))
    return key


def claims(tenant: str, **changes: Any) -> dict[str, Any]:
    at = int(time.time())
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "tenant_id": tenant, "role": "admin", "iat": at, "exp": at + 60, **changes}
    return {name: value for name, value in made.items() if value is not None}


def test_a_user_of_the_issuer_has_the_role_s_scopes(aws: World, issuer: ec.EllipticCurvePrivateKey) -> None:
    tenant = aws.tenant()
    for role, scopes in (("admin", {"chat", "memory:read", "memory:write", "admin"}), ("member", {"chat", "memory:read", "memory:write"})):
        caller = authorized(aws, f"Bearer {jwt.encode(claims(tenant, role=role), issuer, algorithm='ES256')}")
        assert caller is not None
        assert (caller.tenant_id, set(caller.scopes), caller.is_dashboard) == (tenant, scopes, True)


def test_the_platform_s_administrator_belongs_to_no_tenant(aws: World, issuer: ec.EllipticCurvePrivateKey) -> None:
    token = jwt.encode(claims(aws.tenant(), role="platform"), issuer, algorithm="ES256")
    caller = authorized(aws, f"Bearer {token}")
    assert caller is not None
    assert (caller.tenant_id, caller.scopes) == ("", frozenset())


@pytest.mark.parametrize(
    "change",
    [
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iss": "https://other.example"},
        {"aud": "other"},
        {"aud": None},
        {"role": "owner"},
        {"role": None},
        {"sub": None},
        {"tenant_id": "ten_x"},
        {"tenant_id": None},
        {"tenant_id": 5},
        {"tenant_id": "ten_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    ],
)
def test_other_claims_are_refused(aws: World, issuer: ec.EllipticCurvePrivateKey, change: dict[str, Any]) -> None:
    assert authorized(aws, f"Bearer {jwt.encode(claims(aws.tenant(), **change), issuer, algorithm='ES256')}") is None


def test_forged_tokens_are_refused(aws: World, issuer: ec.EllipticCurvePrivateKey) -> None:
    made = claims(aws.tenant())
    good = jwt.encode(made, issuer, algorithm="ES256")
    head, body, signature = good.split(".")
    forged = [
        jwt.encode(made, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256"),
        jwt.encode(made, "", algorithm="none"),
        jwt.encode(made, "x" * 32, algorithm="HS256"),
        f"{head}.{body}.",
        f"{head}.{body}x.{signature}",
        good[:-4],
    ]
    assert authorized(aws, f"Bearer {good}") is not None
    assert [authorized(aws, f"Bearer {token}") for token in forged] == [None] * len(forged)


# tenants
def test_only_the_platform_keeps_tenants(aws: World) -> None:
    tenant = aws.tenant()
    for client in (aws.user(tenant), aws.key(tenant)):
        assert client.refused("POST", "/v1/tenants", {"name": "x"}) == (403, "forbidden")
        assert client.refused("GET", "/v1/tenants") == (403, "forbidden")
    assert aws.platform.get(f"/v1/tenants/{tenant}")["name"] == "Tenant"
    assert tenant in [one["id"] for one in aws.platform.walk("/v1/tenants", limit="1")]
    assert aws.platform.patch(f"/v1/tenants/{tenant}", {"name": "Renamed"})["name"] == "Renamed"


def test_another_tenant_s_settings_are_nobody_s(aws: World) -> None:
    mine, theirs = aws.tenant(), aws.tenant()
    admin, member = aws.user(mine), aws.user(mine, "member")
    for path in (f"/v1/tenants/{theirs}/memory-settings", f"/v1/tenants/{theirs}/api-keys", f"/v1/tenants/{theirs}/memories"):
        assert admin.refused("GET", path) == (404, "not_found")
        assert admin.refused("GET", path.replace(theirs, "ten_x")) == (404, "not_found")
        assert member.refused("GET", path.replace(theirs, mine)) == (403, "insufficient_scope")


def test_settings_are_inherited_until_a_tenant_sets_its_own(aws: World) -> None:
    tenant = aws.platform.post("/v1/tenants", {"name": "New"})["id"]
    path = f"/v1/tenants/{tenant}/memory-settings"
    admin = aws.user(tenant)
    fresh = admin.get(path)
    assert (fresh["mode"], fresh["retention"]) == ("disabled", "explicit_only")
    assert fresh["extraction"] == {
        "async_enabled": True,
        "model_id": "",
        "cooldown_seconds": 180,
        "max_pending_turns": 6,
        "importance_threshold": "medium",
    }
    site = aws.platform.get("/v1/admin/site-settings", category="memory")
    changed = site["settings"] | {"memory_extraction_cooldown_seconds": 60, "memory_async_extraction_enabled": False}
    aws.platform.put("/v1/admin/site-settings", {"category": "memory", "settings": changed})
    assert (admin.get(path)["extraction"]["cooldown_seconds"], admin.get(path)["extraction"]["async_enabled"]) == (60, False)
    own = admin.patch(path, {"extraction": {"cooldown_seconds": 30}})["extraction"]
    assert (own["cooldown_seconds"], own["max_pending_turns"]) == (30, 6)
    assert admin.patch(path, {"extraction": {"cooldown_seconds": None}})["extraction"]["cooldown_seconds"] == 60
    assert admin.refused("PUT", "/v1/admin/site-settings", {"category": "memory", "settings": changed}) == (403, "forbidden")


@pytest.mark.parametrize(
    "patch",
    [{"mode": "on"}, {"extraction": {"cooldown_seconds": 9}}, {"extraction": {"max_pending_turns": 51}}, {"recency_weight": 1.1}, {"x": 1}],
)
def test_settings_out_of_range_are_refused(aws: World, patch: dict[str, Any]) -> None:
    tenant = aws.tenant()
    assert aws.user(tenant).refused("PATCH", f"/v1/tenants/{tenant}/memory-settings", patch) == (422, "validation_failed")


# agents and knowledge bases
def test_agents_change_in_part_and_the_default_one_stays(aws: World) -> None:
    admin = aws.user(aws.tenant())
    [default] = admin.walk("/v1/agents")
    assert (default["is_default"], default["enable_memory"]) == (True, True)
    assert admin.refused("DELETE", f"/v1/agents/{default['id']}") == (409, "default_agent")
    made = admin.post("/v1/agents", {"name": "A", "memory_config": {"auto_extract": False}})
    assert (made["enable_memory"], made["memory_config"]["auto_extract"]) == (False, False)
    path = f"/v1/agents/{made['id']}"
    patched = admin.patch(path, {"memory_config": {"max_memories_per_retrieval": 5}})
    assert patched["memory_config"] == {"max_memories_per_retrieval": 5, "auto_extract": False, "importance_threshold": "medium"}
    assert admin.patch(path, {"memory_config": {"auto_extract": None}})["memory_config"]["auto_extract"] is True
    assert admin.refused("PATCH", path, {"context_compression_config": {"context_window": 3999}}) == (422, "validation_failed")
    assert admin.send("DELETE", path).status == 204
    assert admin.refused("GET", path) == (404, "not_found")


def test_an_unrestricted_base_has_no_memory_of_its_own(aws: World) -> None:
    admin = aws.user(aws.tenant())
    base = admin.post("/v1/knowledge-bases", {"name": "B"})
    assert base["kbMemoryMode"] == "subject"
    for path in ("memories", "memories/graph"):
        assert admin.refused("GET", f"/v1/knowledge-bases/{base['id']}/{path}") == (409, "knowledge_base_not_restricted")
    assert admin.patch(f"/v1/knowledge-bases/{base['id']}", {"kbMemoryMode": "kb_restricted"})["kbMemoryMode"] == "kb_restricted"
    assert admin.get(f"/v1/knowledge-bases/{base['id']}/memories")["items"] == []


def test_things_of_another_tenant_cannot_be_used(aws: World) -> None:
    theirs = aws.user(aws.tenant())
    agent = theirs.post("/v1/agents", {"name": "A"})["id"]
    base = theirs.post("/v1/knowledge-bases", {"name": "B", "kbMemoryMode": "kb_restricted"})["id"]
    mine = aws.user(aws.tenant())
    ada = aws.key(mine.caller.tenant_id, "ada")
    for body in ({"agent_id": agent}, {"knowledge_base_id": base}):
        assert ada.refused("POST", "/v1/conversations", body) == (404, "not_found")
    for path in (f"/v1/agents/{agent}", f"/v1/knowledge-bases/{base}", f"/v1/knowledge-bases/{base}/memories"):
        assert mine.refused("GET", path) == (404, "not_found")
    assert Client(aws, ada.caller, {"knowledge_base_id": base}).refused("GET", "/v1/memories/entities") == (404, "not_found")


def test_scopes_are_checked_before_existence(aws: World) -> None:
    reader = aws.key(aws.tenant(), "ada", scopes=["memory:read"])
    assert reader.refused("GET", "/v1/conversations/cnv_x") == (403, "insufficient_scope")
    assert reader.refused("DELETE", "/v1/memories/entities/ent_x") == (403, "insufficient_scope")
    assert reader.refused("GET", "/v1/agents/agt_x") == (403, "insufficient_scope")
    assert reader.refused("GET", "/v1/memories/entities/ent_x") == (404, "not_found")


def test_the_platform_deletes_a_memory_of_a_tenant(aws: World) -> None:
    tenant = aws.tenant()
    made = aws.key(tenant, "ada").post("/v1/memories/entities", {"name": "tea", "entity_type": "concept"})
    path = f"/v1/tenants/{tenant}/memories"
    assert aws.platform.send("DELETE", f"{path}/{made['id']}").body == {"deleted": 1, "relations_deleted": 0}
    assert aws.platform.get(path)["items"] == []


def test_usage_counts_a_day(aws: World) -> None:
    tenant = aws.tenant()
    ada = aws.key(tenant, "ada")
    conversation = ada.conversation()
    ada.say(conversation, "hello")
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "x"}]})
    ada.post("/v1/memories/entities", {"name": "tea", "entity_type": "concept"})
    [day] = aws.user(tenant).get("/v1/usage")["items"]
    assert {name: day[name] for name in ("turns", "messages", "memories")} == {"turns": 1, "messages": 3, "memories": 1}
    assert day["input_tokens"] > 0
    assert json.dumps(day)
