"""One new account for each test."""

from tests.support.fixtures import ada, aws, model

__all__ = ["ada", "aws", "model"]
