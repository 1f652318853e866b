"""What `make run` refuses to start a search engine for."""

import pytest

from infra.local.__main__ import _searching
from infra.local.progress import Failure, Progress
from infra.local.settings import LocalSettings


def test_faiss_is_refused_where_our_own_opensearch_would_end_at_its_first_vector() -> None:
    environ = {"TIDEMARK_SEARCH": "opensearch", "TIDEMARK_OPENSEARCH_ENGINE": "faiss"}
    with pytest.raises(Failure, match="native library"), _searching(LocalSettings.read(environ, interactive=False), Progress()):
        pytest.fail("started")
    named = LocalSettings.read(environ | {"TIDEMARK_OPENSEARCH_URL": "http://localhost:9200"}, interactive=False)
    with _searching(named, Progress()):
        assert named.parameters["OpenSearchEngine"] == "faiss"
