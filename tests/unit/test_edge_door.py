"""The local service answers nobody but its own start before it is ready."""

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from infra.local import edge


async def _stream(_: Request, __: str, ___: bytes) -> Response:
    return Response(status_code=204)


@pytest.mark.parametrize(("given", "lets"), [({}, False), ({edge.Door.HEADER: "x"}, False), ({edge.Door.HEADER: "ü"}, False), (None, True)])
def test_before_the_credentials_are_written_only_the_start_is_let_in(given: dict[str, str] | None, lets: bool) -> None:
    door = edge.Door()
    headers = {edge.Door.HEADER: door.key} if given is None else given
    events = {"accept": "text/event-stream"}  # answered beside the gateway, so without a network
    with TestClient(edge.application("http://127.0.0.1:9/stage", "", [], _stream, door)) as client:

        def status(sent: dict[str, str]) -> int:
            answer = client.post(
                "/api/v1/conversations/cnv_1/messages",
                json={},
                headers=[(name.encode(), value.encode()) for name, value in (events | sent).items()],
            )
            assert answer.status_code == 204 or answer.json()["code"] == "starting"
            return answer.status_code

        assert status(headers) == (204 if lets else 503)
        door.is_open = True
        assert status({}) == 204
