"""Who calls: resolves API keys and dashboard tokens for every route."""

from typing import Any

from aws_lambda_powertools.utilities.data_classes import event_source
from aws_lambda_powertools.utilities.data_classes.api_gateway_authorizer_event import (
    APIGatewayAuthorizerRequestEvent,
    APIGatewayAuthorizerResponse,
)
from aws_lambda_powertools.utilities.typing import LambdaContext
from tidemark import bootstrap
from tidemark.errors import UnauthorizedError


@event_source(data_class=APIGatewayAuthorizerRequestEvent)
def handler(event: APIGatewayAuthorizerRequestEvent, context: LambdaContext) -> dict[str, Any]:
    try:
        caller = bootstrap.authentication().caller(event.headers.get("authorization", ""))
    except UnauthorizedError:
        raise Exception("Unauthorized") from None
    arn = event.parsed_arn
    policy = APIGatewayAuthorizerResponse(
        principal_id=caller.id,
        region=arn.region,
        aws_account_id=arn.aws_account_id,
        api_id=arn.api_id,
        stage=arn.stage,
        partition=arn.partition,
        context={"caller": caller.model_dump_json()},
    )
    policy.allow_all_routes()  # the token says who calls; what it may do, the route checks
    return policy.asdict()
