"""API keys: 256 random bits, shown once, of which only a SHA-256 is kept. A short prefix finds the key's record."""

import base64
import hashlib
import hmac
import secrets
from datetime import timedelta

from tidemark.clock import now
from tidemark.errors import InvalidError, NotFoundError, UnauthorizedError
from tidemark.ids import is_id, new_id
from tidemark.storage import keys, table
from tidemark.storage.table import Item, StaleError
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import ApiKey, ApiKeyBody, CreatedApiKey, StoredApiKey

PREFIX_LENGTH = 16
USE_RECORDED_EVERY = timedelta(seconds=30)  # one write per key and interval, however busy the key is


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class _Lookup(ApiKey):
    tenant_id: str


class ApiKeyService:
    def create(self, caller: Caller, tenant_id: str, body: ApiKeyBody) -> CreatedApiKey:
        _need(caller, tenant_id)
        at = now()
        if body.expires_at is not None and body.expires_at <= at:
            raise InvalidError.field("/expires_at", "The key would have ended already.")
        secret = "tm_" + base64.b32encode(secrets.token_bytes(35)).decode().lower()  # 56 digits, 280 bits
        key = StoredApiKey(
            id=new_id("key"),
            name=body.name,
            prefix=secret[:PREFIX_LENGTH],
            scopes=list(dict.fromkeys(body.scopes)),
            expires_at=body.expires_at,
            created_at=at,
            tenant_id=tenant_id,
            secret_sha256=digest(secret),
            requests_per_minute=body.requests_per_minute,
        )
        with table.transaction() as write:
            write.save(table.item((keys.api_keys(tenant_id), key.id), key, kind="api_key", version=0))
            write.save(
                table.item(keys.api_key_lookup(key.prefix), _Lookup.model_validate(key.model_dump()), kind="api_key_lookup"),
                condition=Item.pk.does_not_exist(),
            )
            write.save(audit.entry_item(caller, tenant_id, "api_key.create", key.id, "allow", {"scopes": key.scopes}))
        return CreatedApiKey(**_public(key).model_dump(), secret=secret)

    def page(self, caller: Caller, tenant_id: str, limit: int, after: str | None) -> tuple[list[ApiKey], str | None]:
        _need(caller, tenant_id)
        found, more = table.page(keys.api_keys(tenant_id), StoredApiKey, limit, after)
        return [_public(key) for key in found], more

    def revoke(self, caller: Caller, tenant_id: str, key_id: str) -> None:
        """The key stays listed with the time of its end. Revoking twice is a missing key."""
        _need(caller, tenant_id)
        item = table.get((keys.api_keys(tenant_id), key_id)) if is_id(key_id, "key") else None
        key = item.read(StoredApiKey) if item else None
        if key is None or key.revoked_at is not None:
            raise NotFoundError
        table.put(_item(key.model_copy(update={"revoked_at": now()})))
        audit.record(caller, "api_key.revoke", key.id, tenant_id=tenant_id)

    def authenticate(self, secret: str) -> Caller:
        """Whose key this is. Raises UnauthorizedError for anything but a living key."""
        lookup = table.read(keys.api_key_lookup(secret[:PREFIX_LENGTH]), _Lookup) if len(secret) > PREFIX_LENGTH else None
        key = table.read((keys.api_keys(lookup.tenant_id), lookup.id), StoredApiKey) if lookup else None
        known = key.secret_sha256 if key else digest("")
        if not hmac.compare_digest(known, digest(secret)) or key is None:
            raise UnauthorizedError("This token is not valid.")
        at = now()
        if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= at):
            raise UnauthorizedError("This token is not valid.")
        if key.last_used_at is None or at - key.last_used_at > USE_RECORDED_EVERY:
            self._record_use(key.model_copy(update={"last_used_at": at}))
        return Caller(
            kind="api_key",
            id=key.id,
            tenant_id=key.tenant_id,
            scopes=frozenset(key.scopes),
            requests_per_minute=key.requests_per_minute,
        )

    @staticmethod
    def _record_use(key: StoredApiKey) -> None:
        try:
            # never over a revocation that came in between
            table.put(_item(key), ~Item.data.contains('"revoked_at":"') & Item.pk.exists())
        except StaleError:
            return


def _need(caller: Caller, tenant_id: str) -> None:
    """The tenant's administrator or the platform's, and a tenant that is there."""
    caller.need_administrator(tenant_id)
    if not is_id(tenant_id, "ten") or table.get(keys.tenant(tenant_id)) is None:
        raise NotFoundError


def _item(key: StoredApiKey) -> Item:
    return table.item((keys.api_keys(key.tenant_id), key.id), key, kind="api_key")


def _public(key: StoredApiKey) -> ApiKey:
    return ApiKey.model_validate(key.model_dump(include=set(ApiKey.model_fields)))
