"""What template.yaml allows each function, against what the function does at AWS."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]

from tests.support import world
from tests.support.world import BUCKET, EPHEMERAL, QUEUE, TABLE

RESOURCES: dict[str, Any] = yaml_parse((Path(__file__).resolve().parents[2] / "template.yaml").read_text(encoding="utf-8"))["Resources"]
NAMES = {TABLE: "DataTable", EPHEMERAL: "EphemeralTable", BUCKET: "BlobBucket"}
S3 = {"DeleteObjects": "DeleteObject", "ListObjectsV2": "ListBucket"}
Grant = tuple[str, str]  # action, resource: "dynamodb:Query" on "DataTable/index/by_due"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def named(resource: Any) -> str:
    """A resource of a statement by its logical id."""
    if "Fn::GetAtt" in resource:
        return str(resource["Fn::GetAtt"][0])
    text = str(resource.get("Fn::Sub", resource.get("Ref")))
    return text.replace("${", "").replace(".Arn}", "")


def grants(function: str) -> set[Grant]:
    """What a function may do, the shared policies included; those of AWS's own services outside DynamoDB, S3 and SQS too."""
    found: set[Grant] = set()
    for policy in RESOURCES[function]["Properties"]["Policies"]:
        shared = policy["Fn::If"][1] if "Fn::If" in policy else policy
        statements = RESOURCES[shared["Ref"]]["Properties"]["PolicyDocument"]["Statement"] if "Ref" in shared else shared["Statement"]
        for one in statements:
            found |= {(action, named(resource)) for action in listed(one["Action"]) for resource in listed(one["Resource"])}
    return found


@dataclass
class Calls:
    """What was asked of AWS, by function."""

    made: dict[str, set[Grant]] = field(default_factory=dict)
    serving: str = ""

    def note(self, operation: str, arguments: dict[str, Any]) -> None:
        if self.serving:
            self.made.setdefault(self.serving, set()).update(_needed(operation, arguments))


def _needed(operation: str, arguments: dict[str, Any]) -> Iterator[Grant]:
    if "QueueUrl" in arguments:
        yield f"sqs:{operation}", "ExtractionQueue" if arguments["QueueUrl"].endswith(QUEUE) else arguments["QueueUrl"]
    elif "Bucket" in arguments:
        place = "BlobBucket" if operation == "ListObjectsV2" else "BlobBucket/*"
        yield f"s3:{S3.get(operation, operation)}", place
        if "Tagging" in arguments:
            yield "s3:PutObjectTagging", place
    elif operation == "TransactWriteItems":
        for one in arguments["TransactItems"]:
            [(kind, item)] = one.items()
            yield f"dynamodb:{'ConditionCheck' if kind == 'ConditionCheck' else kind}Item", NAMES[item["TableName"]]
    elif "RequestItems" in arguments:
        for name in arguments["RequestItems"]:
            yield f"dynamodb:{operation}", NAMES[name]
    else:
        index = f"/index/{arguments['IndexName']}" if "IndexName" in arguments else ""
        yield f"dynamodb:{operation}", NAMES[arguments["TableName"]] + index


@contextmanager
def recorded(patch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Notes what each function asks of AWS while a test drives the service."""
    calls, call, load = Calls(), BaseClient._make_api_call, world.function  # type: ignore[attr-defined]

    def noting(self: Any, operation: str, arguments: Any) -> Any:
        calls.note(operation, arguments)
        return call(self, operation, arguments)

    class Watched:
        def __init__(self, name: str) -> None:
            self._name = name

        def handler(self, event: Any, context: Any) -> Any:
            calls.serving = self._name
            try:
                return load(self._name).handler(event, context)
            finally:
                calls.serving = ""

    with patch.context() as patched:
        patched.setattr(BaseClient, "_make_api_call", noting)
        patched.setattr(world, "function", Watched)
        yield calls
