"""Dashboard users: JWTs of an OIDC issuer, checked against its published keys."""

from functools import cached_property

import jwt
from pydantic import BaseModel, ConfigDict, ValidationError

from tidemark.errors import UnauthorizedError
from tidemark.ids import is_id
from tidemark.tenancy.caller import ROLE_SCOPES, Caller, Role

ALGORITHMS = ["ES256", "RS256"]  # never `none`, never a shared secret


class _Claims(BaseModel):
    model_config = ConfigDict(strict=True)

    sub: str
    role: Role
    tenant_id: str = ""


class DashboardTokens:
    def __init__(self, issuer: str, audience: str, jwks_url: str) -> None:
        self._issuer, self._audience, self._jwks_url = issuer, audience, jwks_url

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        return jwt.PyJWKClient(self._jwks_url, cache_keys=True, lifespan=300, timeout=5)

    def verify(self, token: str) -> Caller:
        """Who the token's user is. Raises UnauthorizedError for whatever the issuer did not sign for us, or that has ended."""
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            payload = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
            claims = _Claims.model_validate(payload)
        except (jwt.PyJWTError, ValidationError, ValueError) as exc:
            raise UnauthorizedError("This token is not valid.") from exc
        if claims.role != "platform" and not is_id(claims.tenant_id, "ten"):
            raise UnauthorizedError("This token is not valid.")
        return Caller(
            kind="user",
            id=claims.sub,
            tenant_id="" if claims.role == "platform" else claims.tenant_id,
            scopes=ROLE_SCOPES[claims.role],
            role=claims.role,
        )
