"""What template.yaml promises of every deployment, read from the file itself."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]
from tidemark import observability
from tidemark.memory.extraction import LASTS
from tidemark.storage.keys import drift_cursor

from tests.support.permissions import listed

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


FUNCTIONS = of_type("AWS::Serverless::Function")
TABLES = of_type("AWS::DynamoDB::Table")
FUNCTION_DEFAULTS: dict[str, Any] = TEMPLATE["Globals"]["Function"]


def statements() -> list[tuple[str, dict[str, Any]]]:
    """Every permission that is granted, by the resource that grants it."""
    found = []
    for name, function in FUNCTIONS.items():
        for policy in function["Policies"]:
            found += [(name, statement) for statement in policy.get("Statement", [])]
    for name, policy in of_type("AWS::IAM::ManagedPolicy").items():
        found += [(name, statement) for statement in policy["PolicyDocument"]["Statement"]]
    return found


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else str(next(iter(value.values())))


def test_there_are_permissions_to_look_at() -> None:
    assert len(statements()) > len(FUNCTIONS)


@pytest.mark.parametrize(("owner", "statement"), statements())
def test_no_permission_covers_everything(owner: str, statement: dict[str, Any]) -> None:
    assert all("*" not in action for action in listed(statement["Action"])), owner
    for resource in listed(statement["Resource"]):
        # A star may stand below one named resource, never for a resource or in its name.
        assert "*" not in text_of(resource) or re.fullmatch(r"\$\{(BlobBucket\.Arn|OpenSearchDomainArn)\}/\*", text_of(resource)), owner


def test_the_sweeper_shares_nobody_s_policy_and_writes_its_own_place_only() -> None:
    policies = FUNCTIONS["SweeperFunction"]["Policies"]
    shared = {reference for policy in policies for reference in [policy.get("Ref")] if reference}
    assert shared == set()
    writes = [one for name, one in statements() if name == "SweeperFunction" and "dynamodb:PutItem" in listed(one["Action"])]
    assert [one["Condition"] for one in writes] == [{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [drift_cursor()[0]]}}]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_traced_limited_and_logged(name: str) -> None:
    function = FUNCTION_DEFAULTS | FUNCTIONS[name]
    assert function["Tracing"] == "Active"
    assert 0 < function["Timeout"] <= 120
    assert function["LoggingConfig"]["LogFormat"] == "JSON"
    group = RESOURCES[function["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def buffers(function: dict[str, Any]) -> bool:
    routes = [event["Properties"] for event in function.get("Events", {}).values() if event["Type"] == "Api"]
    return any(route.get("ResponseTransferMode") != "RESPONSE_STREAM" for route in routes)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if buffers(function)])
def test_functions_of_the_api_end_before_the_gateway_gives_up(name: str) -> None:
    assert (FUNCTION_DEFAULTS | FUNCTIONS[name])["Timeout"] <= 29


def test_the_streaming_function_is_served_by_the_web_adapter() -> None:
    function = FUNCTIONS["ChatStreamFunction"]
    routes = [event["Properties"] for event in function["Events"].values()]
    assert {route["Path"]: route["ResponseTransferMode"] for route in routes} == {
        "/v1/conversations/{conversation_id}/messages": "RESPONSE_STREAM",
        "/v1/chat/completions": "RESPONSE_STREAM",
    }
    variables = function["Environment"]["Variables"]
    assert (variables["AWS_LAMBDA_EXEC_WRAPPER"], variables["AWS_LWA_INVOKE_MODE"]) == ("/opt/bootstrap", "response_stream")
    assert variables["AWS_LWA_READINESS_CHECK_PATH"] == "/ready"
    assert "LambdaAdapterLayer" in str(function["Layers"])


def test_the_lease_of_an_extraction_outlasts_its_function_and_not_much_more() -> None:
    timeout = FUNCTIONS["ExtractionFunction"]["Timeout"]
    assert timeout < LASTS.total_seconds() < timeout + 30


def test_only_public_routes_have_no_authorizer() -> None:
    routes = [
        event["Properties"] for function in FUNCTIONS.values() for event in function.get("Events", {}).values() if event["Type"] == "Api"
    ]
    opened = {route["Path"] for route in routes if route.get("Auth") == {"Authorizer": "NONE"} and route["Method"] != "OPTIONS"}
    assert opened == {"/health", "/openapi.json", "/docs", "/console", "/console/{proxy+}"}


def test_every_route_has_a_preflight() -> None:
    events = [
        event["Properties"] for function in FUNCTIONS.values() for event in function.get("Events", {}).values() if event["Type"] == "Api"
    ]
    preflights = {event["Path"] for event in events if event["Method"] == "OPTIONS"}
    # What has no authorizer is fetched without headers of its own and needs none.
    assert {event["Path"] for event in events if "Auth" not in event} == preflights


def test_the_authorizer_is_cached_for_less_than_a_revocation_may_take() -> None:
    authorizer = RESOURCES["Api"]["Properties"]["Auth"]["Authorizers"]["TokenAuthorizer"]
    assert 0 < authorizer["Identity"]["ReauthorizeEvery"] <= 60


@pytest.mark.parametrize("response", RESOURCES["Api"]["Properties"]["GatewayResponses"].values())
def test_refusals_of_the_gateway_are_problems(response: dict[str, Any]) -> None:
    headers = response["ResponseParameters"]["Headers"]
    assert headers["Content-Type"] == "'application/problem+json'"
    assert headers["X-Request-Id"] == "context.requestId"
    assert "Access-Control-Allow-Origin" in headers
    body = response["ResponseTemplates"]["application/json"]
    assert f'"status":{response["StatusCode"]}' in body
    assert '"request_id":"$context.requestId"' in body


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_encrypted_recoverable_and_expire(table: str) -> None:
    properties = TABLES[table]
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["TimeToLiveSpecification"]["Enabled"] is True
    assert all(branch["SSEEnabled"] for branch in properties["SSESpecification"]["Fn::If"][1:])


PARTS_WITH_DATA: dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "AWS::DynamoDB::Table": lambda one: [one["SSESpecification"]],
    "AWS::SQS::Queue": lambda one: [one["KmsMasterKeyId"], one["SqsManagedSseEnabled"]],
    "AWS::S3::Bucket": lambda one: [
        rule["ServerSideEncryptionByDefault"] for rule in one["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    ],
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind in PARTS_WITH_DATA for name in of_type(kind)])
def test_whatever_keeps_data_is_encrypted_with_the_key_that_is_given_or_else_by_aws(name: str, kind: str) -> None:
    for choice in PARTS_WITH_DATA[kind](RESOURCES[name]["Properties"]):
        condition, with_key, without = choice["Fn::If"]
        assert condition == "HasKmsKey"
        if kind == "AWS::SQS::Queue":
            assert (with_key, without) in (({"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}), ({"Ref": "AWS::NoValue"}, True))
        else:
            assert {"Ref": "KmsKeyArn"} in with_key.values()
            assert without in ({"SSEEnabled": True}, {"SSEAlgorithm": "AES256"})


def test_every_function_may_use_the_key_that_is_given() -> None:
    for name, function in FUNCTIONS.items():
        assert {"Fn::If": ["HasKmsKey", {"Ref": "KeyUsePolicy"}, {"Ref": "AWS::NoValue"}]} in function["Policies"], name


def test_the_bucket_is_private_and_speaks_tls_only() -> None:
    [(name, bucket)] = of_type("AWS::S3::Bucket").items()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    [policy] = of_type("AWS::S3::BucketPolicy").values()
    assert policy["Bucket"] == {"Ref": name}
    [refusal] = policy["PolicyDocument"]["Statement"]
    assert (refusal["Effect"], refusal["Principal"], refusal["Action"]) == ("Deny", "*", "s3:*")
    assert refusal["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert refusal["Resource"] == [{"Fn::GetAtt": [name, "Arn"]}, {"Fn::Sub": f"${{{name}.Arn}}/*"}]


def test_data_outlives_its_stack() -> None:
    assert all(RESOURCES[name]["DeletionPolicy"] == "Retain" for name in ("DataTable", "BlobBucket"))


def test_a_message_stays_hidden_for_six_runs_of_its_function() -> None:
    queue = of_type("AWS::SQS::Queue")["ExtractionQueue"]
    assert queue["VisibilityTimeout"] >= 6 * FUNCTIONS["ExtractionFunction"]["Timeout"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["ExtractionDeadLetterQueue", "Arn"]}


def test_event_sources_report_single_failures_and_give_up_somewhere() -> None:
    assert FUNCTIONS["ExtractionFunction"]["Events"]["Queue"]["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    changes = FUNCTIONS["IndexerFunction"]["Events"]["Changes"]["Properties"]
    assert changes["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert changes["BisectBatchOnFunctionError"] is True
    assert 0 < changes["MaximumRetryAttempts"] <= 100
    assert changes["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["IndexerDeadLetterQueue", "Arn"]}


def test_search_that_is_behind_or_away_raises_an_alarm() -> None:
    alarms = {(one["Namespace"], one["MetricName"]): one for one in of_type("AWS::CloudWatch::Alarm").values()}
    lag = alarms[observability.NAMESPACE, "IndexLag"]
    assert lag["Threshold"] == 30  # seconds until a write is searchable, by the contract
    assert {one["Name"]: one["Value"] for one in lag["Dimensions"]} == {"service": observability.SERVICE}
    assert (observability.NAMESPACE, "SearchUnavailable") in alarms
    assert alarms["AWS/SQS", "ApproximateNumberOfMessagesVisible"]["Dimensions"][0]["Value"] == {
        "Fn::GetAtt": ["IndexerDeadLetterQueue", "QueueName"]
    }
    assert all(one["TreatMissingData"] == "notBreaching" and "HasAlarmTopic" in str(one["AlarmActions"]) for one in alarms.values())


def test_routes_fit_the_resource_policy_of_their_function() -> None:
    # About 350 bytes a statement, 20 KB in all.
    assert all(sum(event["Type"] == "Api" for event in function.get("Events", {}).values()) <= 40 for function in FUNCTIONS.values())


def test_the_model_key_is_never_shown() -> None:
    assert TEMPLATE["Parameters"]["ModelApiKey"]["NoEcho"] is True


def locked_versions() -> dict[str, str]:
    """What the deployed functions need by uv.lock: the project's dependencies and its `opensearch` extra, with all that they need."""
    packages: dict[str, dict[str, Any]] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]:
        packages[package["name"]] = package
    project = packages["tidemark"]
    ahead = [*project["dependencies"], *project["optional-dependencies"]["opensearch"]]
    needed: dict[str, str] = {}
    while ahead:
        dependency = ahead.pop()
        package = packages[dependency["name"]]
        new = package["name"] not in needed
        needed[package["name"]] = package["version"]
        if new:
            ahead += package.get("dependencies", [])
        ahead += [
            one for extra in dependency.get("extra", []) for one in package["optional-dependencies"][extra] if one["name"] not in needed
        ]
    return needed


def test_the_dependencies_layer_follows_the_lock() -> None:
    lines = (ROOT / "layers" / "dependencies" / "requirements.txt").read_text(encoding="utf-8")
    exported = dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", lines, re.MULTILINE))
    needed = locked_versions()
    # Packages of other platforms are locked and not exported.
    assert {name: needed.get(name) for name in exported} == exported, "run `make requirements`"
    assert {name for name in needed if name not in exported} <= {"colorama", "tzdata", "exceptiongroup", "backports-asyncio-runner"}, (
        "run `make requirements`"
    )
