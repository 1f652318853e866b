"""Turns and chat completions, buffered, and the models that answer them."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from tidemark import bootstrap
from tidemark.conversations.model import TurnAnswer
from tidemark.conversations.requests import TurnBody
from tidemark.conversations.turns import last
from tidemark.http.app import ChatCaller, answer, api, deadline
from tidemark.http.chat import ChatHandler, naming
from tidemark.http.openai import ChatBody, ChatCompletion, ListedModel, ModelList, chat_completion, completion

app = api()
handler = ChatHandler(app, bootstrap.settings, bootstrap.idempotency)


@app.post("/v1/conversations/<conversation_id>/messages")
def post_turn(conversation_id: str, body: Annotated[TurnBody, Body()], caller: ChatCaller) -> Response[TurnAnswer]:
    return answer(bootstrap.turns().answer(caller, conversation_id, body, deadline(app)))


@app.post("/v1/chat/completions")
def create_completion(body: Annotated[ChatBody, Body()], caller: ChatCaller) -> Response[ChatCompletion]:
    return answer(chat_completion(last(bootstrap.completions().run(naming(caller, body), completion(body), deadline(app)))))


@app.get("/v1/models")
def models(caller: ChatCaller) -> Response[ModelList]:
    return answer(ModelList(data=[ListedModel(id=name) for name in bootstrap.completions().models(caller)]))
