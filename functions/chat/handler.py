"""Turns, and the models that answer them."""

from datetime import timedelta
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from tidemark import bootstrap
from tidemark.clock import now
from tidemark.conversations.model import TurnAnswer
from tidemark.conversations.requests import TurnBody
from tidemark.http.app import ChatCaller, Handler, answer, api

app = api()
handler = Handler(app, bootstrap.settings, bootstrap.idempotency)


@app.post("/v1/conversations/<conversation_id>/messages")
def post_turn(conversation_id: str, body: Annotated[TurnBody, Body()], caller: ChatCaller) -> Response[TurnAnswer]:
    left = timedelta(milliseconds=app.lambda_context.get_remaining_time_in_millis())
    return answer(bootstrap.turns().answer(caller, conversation_id, body, now() + left))
