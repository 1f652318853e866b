"""`/local/*`: what a real deployment leaves to its identity provider."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.issuer import LONG, Issuer, Role
from infra.local.problems import problem

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class TokenRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    sub: str = Field(min_length=1, max_length=256)
    role: Role
    tenant_id: str | None = None
    expires_in: int = Field(default=LONG, gt=0, le=10 * 365 * 24 * 3600)


class Refused(Exception):
    def __init__(self, answer: JSONResponse) -> None:
        self.answer = answer


def routes(issuer: Issuer, dynamodb: Any, table: str) -> list[Route]:
    def tenant_exists(tenant_id: str) -> bool:
        key = {"pk": {"S": f"{tenant_id}#tenant"}, "sk": {"S": "tenant"}}
        return "Item" in dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)

    async def jwks(_: Request) -> Response:
        return JSONResponse(issuer.jwks)

    async def tokens(request: Request) -> Response:
        try:
            wanted = _read(request, await request.body())
            if wanted.tenant_id is not None and not await run_in_threadpool(tenant_exists, wanted.tenant_id):
                raise _invalid(("/tenant_id", "There is no such tenant."))
        except Refused as refused:
            return refused.answer
        return JSONResponse({"token": issuer.token(wanted.sub, wanted.role, wanted.tenant_id, wanted.expires_in)})

    return [Route("/local/jwks.json", jwks, methods=["GET"]), Route("/local/tokens", tokens, methods=["POST"])]


def _read(request: Request, body: bytes) -> TokenRequest:
    # A page of another name that resolves to this machine must not mint tokens.
    if request.headers.get("host", "").rsplit(":", 1)[0] not in LOCAL_NAMES:
        raise Refused(problem(403, "forbidden", "Local tokens are for callers of localhost."))
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(problem(415, "unsupported_media_type", "The body must be application/json."))
    try:
        wanted = TokenRequest.model_validate_json(body)
    except ValidationError as error:
        if any(found["type"] == "json_invalid" for found in error.errors()):
            raise Refused(problem(400, "malformed_json", "The body is not JSON.")) from error
        raise _invalid(*(("/" + "/".join(map(str, found["loc"])), found["msg"]) for found in error.errors())) from error
    if (wanted.tenant_id is None) is (wanted.role != "platform"):
        raise _invalid(("/tenant_id", "Required for this role." if wanted.tenant_id is None else "A platform administrator has no tenant."))
    return wanted


def _invalid(*found: tuple[str, str]) -> Refused:
    errors = [{"path": path, "message": message} for path, message in found]
    return Refused(problem(422, "validation_failed", "The request is not valid.", errors=errors))
