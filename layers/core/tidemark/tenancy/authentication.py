"""One door for both kinds of token."""

from tidemark.errors import UnauthorizedError
from tidemark.storage import keys, table
from tidemark.tenancy.api_keys import ApiKeyService
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import StoredTenant
from tidemark.tenancy.tokens import DashboardTokens


class Authentication:
    def __init__(self, api_keys: ApiKeyService, tokens: DashboardTokens) -> None:
        self._api_keys, self._tokens = api_keys, tokens

    def caller(self, authorization: str) -> Caller:
        """Who sends this Authorization header. Raises UnauthorizedError."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token or token != token.strip() or " " in token:
            raise UnauthorizedError("An Authorization header of the form `Bearer <token>` is needed.")
        caller = self._api_keys.authenticate(token) if token.startswith("tm_") else self._tokens.verify(token)
        if caller.tenant_id:
            tenant = table.read(keys.tenant(caller.tenant_id), StoredTenant)
            if tenant is None or tenant.state != "active":
                raise UnauthorizedError("This token is not valid.")
        return caller
