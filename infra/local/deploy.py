"""Deploys template.yaml to the emulator through CloudFormation, as `sam deploy` does to AWS."""

import json
import platform
import sys
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, WaiterError
from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]

from infra.local import gateway_responses
from infra.local.emulator_process import Emulator
from infra.local.packaging import Archive, folder, our_packages
from infra.local.progress import Failure
from infra.local.settings import LocalSettings

STACK = "tidemark"
BUCKET = "tidemark-artifacts"


def deploy(settings: LocalSettings, emulator: Emulator) -> dict[str, str]:
    """The stack's outputs."""
    template = yaml_parse((settings.source / "template.yaml").read_text(encoding="utf-8"))
    archives = _package(template, settings.source)
    s3 = emulator.client("s3")
    _upload(s3, archives)
    _apply(emulator.client("cloudformation"), json.dumps(template), _parameters(template, settings))
    _discard_others(s3, archives)
    stack = emulator.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    api = template["Resources"]["Api"]["Properties"]
    gateway_responses.apply(emulator.client("apigateway"), outputs["ApiId"], api["StageName"], api["GatewayResponses"])
    return outputs


def _package(template: dict[str, Any], source: Path) -> list[Archive]:
    """Put the address of an archive where the template names a folder."""
    archives = []
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Serverless::Function":
            _without_streaming(resource)
            place, archive = "CodeUri", folder(_existing(source / properties["CodeUri"], name))
        elif resource["Type"] == "AWS::Serverless::LayerVersion":
            place = "ContentUri"
            archive = (
                our_packages() if name == "DependenciesLayer" else folder(_existing(source / properties["ContentUri"], name), "python/")
            )
        else:
            continue
        properties[place] = {"Bucket": BUCKET, "Key": archive.key}
        archives.append(archive)
    return archives


def _without_streaming(resource: dict[str, Any]) -> None:
    """Under the web adapter a function streams; the emulator has neither, so it gets the buffered code and the edge streams itself."""
    buffered = resource.get("Metadata", {}).get("Buffered")
    if buffered is None:
        return
    properties = resource["Properties"]
    properties |= {"CodeUri": buffered["CodeUri"], "Handler": buffered["Handler"]}
    del properties["Layers"], properties["Environment"]
    for event in properties["Events"].values():
        event["Properties"].pop("ResponseTransferMode", None)


def _existing(path: Path, name: str) -> Path:
    if not any(path.glob("*")):
        raise Failure(f"{name} of template.yaml has no code: {path} is missing or empty.")
    return path


def _upload(s3: Any, archives: list[Archive]) -> None:
    try:
        s3.create_bucket(Bucket=BUCKET)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise
    present = {entry["Key"] for entry in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])}
    for archive in archives:
        if archive.key not in present:
            s3.put_object(Bucket=BUCKET, Key=archive.key, Body=archive.content)


def _discard_others(s3: Any, archives: list[Archive]) -> None:
    kept = {archive.key for archive in archives}
    for entry in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        if entry["Key"] not in kept:
            s3.delete_object(Bucket=BUCKET, Key=entry["Key"])


def _parameters(template: dict[str, Any], settings: LocalSettings) -> list[dict[str, str]]:
    values = settings.parameters | {
        # The emulator runs functions on this very Python, whatever the name says; this keeps the name honest.
        "PythonRuntime": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "Architecture": "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",
    }
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items() if key in template["Parameters"]]


def _apply(cloudformation: Any, body: str, parameters: list[dict[str, str]]) -> None:
    request = {
        "StackName": STACK,
        "TemplateBody": body,
        "Parameters": parameters,
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    wait = {"Delay": 0.1, "MaxAttempts": 900}
    try:
        try:
            cloudformation.describe_stacks(StackName=STACK)
        except ClientError:
            cloudformation.create_stack(**request)
            cloudformation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig=wait)
        else:
            cloudformation.update_stack(**request)
            cloudformation.get_waiter("stack_update_complete").wait(StackName=STACK, WaiterConfig=wait)
    except ClientError as error:
        if "No updates are to be performed" not in error.response["Error"]["Message"]:
            raise Failure(f"CloudFormation refused the template: {error.response['Error']['Message']}") from error
    except WaiterError as error:
        raise Failure(f"The stack could not be deployed: {_reason(cloudformation)}") from error


def _reason(cloudformation: Any) -> str:
    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    failed = [event for event in events if event["ResourceStatus"].endswith("FAILED") and event.get("ResourceStatusReason")]
    return "; ".join(f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}" for event in failed[:3]) or "no reason was given"
