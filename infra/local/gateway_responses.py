"""The template's GatewayResponses, which the emulator's CloudFormation does not import with the API's definition."""

from typing import Any

MARK = "gateway responses of template.yaml"


def apply(gateway: Any, api_id: str, stage: str, responses: dict[str, dict[str, Any]]) -> None:
    for kind, response in responses.items():
        headers = response.get("ResponseParameters", {}).get("Headers", {})
        gateway.put_gateway_response(
            restApiId=api_id,
            responseType=kind,
            statusCode=str(response["StatusCode"]),
            responseParameters={f"gatewayresponse.header.{name}": value for name, value in headers.items()},
            responseTemplates=response["ResponseTemplates"],
        )
    # As on AWS they are in effect from the next deployment on; the ones before are of no use to anyone.
    made = gateway.create_deployment(restApiId=api_id, stageName=stage, description=MARK)["id"]
    for deployment in gateway.get_deployments(restApiId=api_id, limit=500)["items"]:
        if deployment["id"] != made and deployment.get("description") == MARK:
            gateway.delete_deployment(restApiId=api_id, deploymentId=deployment["id"])
