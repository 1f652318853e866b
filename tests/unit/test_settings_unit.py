import pytest
from pydantic import ValidationError
from tidemark.settings import Settings


def test_settings_come_from_the_mapping_that_is_given() -> None:
    found = Settings.read({"TIDEMARK_TABLE": "t", "TIDEMARK_MODEL_PROVIDER": "offline", "TABLE": "no", "TIDEMARK_UNKNOWN": "x"})
    assert (found.table, found.model_provider) == ("t", "offline")


def test_an_empty_variable_is_a_missing_one() -> None:
    assert Settings.read({"TIDEMARK_TABLE": "t", "TIDEMARK_SEARCH": ""}).search == "opensearch"


@pytest.mark.parametrize("environment", [{}, {"TIDEMARK_TABLE": "t", "TIDEMARK_EMBEDDER": "magic"}])
def test_a_wrong_environment_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Settings.read(environment)


def test_the_model_s_key_is_not_shown() -> None:
    assert "hidden" not in repr(Settings(table="t", model_api_key="hidden"))
