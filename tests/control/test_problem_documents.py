"""What is asked wrongly is answered with a problem document that says what would be right."""

import httpx
import pytest

from groupcoord.control.access import MOST_BODY_BYTES
from groupcoord.control.routes import clusters
from tests.control.support import URL, Control

pytestmark = pytest.mark.asyncio

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/statsu", "/status"),
        ("/group/app/wait", "/groups/{group}/wait"),
        ("/groups/app/wiat", "/groups/{group}/wait"),
        ("/clock/advnace", "/clock/advance"),
        ("/brokers/default/topcis", "/brokers/{broker}/topics"),
        ("/topics/", "/topics"),
    ],
)
async def test_of_an_unknown_path_the_nearest_is_named(control: Control, path: str, nearest: str) -> None:
    assert (await control.get(path, 404))["detail"] == f"there is no path {path}; the nearest is {nearest}"


async def test_of_a_wrong_method_the_right_ones_are_named(control: Control) -> None:
    answer = await control.ask("PUT", "/groups/app")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")
    assert answer.json()["detail"] == "PUT is not for /groups/app: it takes DELETE and GET"


async def send(control: Control, content: bytes, headers: dict[str, str]) -> httpx.Response:
    return await control.http.post("/clock/advance", content=content, headers=headers)


@pytest.mark.parametrize(
    ("content", "headers", "status", "said"),
    [
        (b'{"seconds": ', JSON, 400, "the body is not JSON: Expecting value at character 12"),
        (b"\xff", JSON, 400, "There was an error parsing the body"),
        (b'{"seconds": 1}', {"content-type": "text/plain"}, 415, "application/json"),
        (b'{"seconds": 1}', {}, 415, "application/json"),
        (b"", JSON, 422, "body: Field required"),
        (b"", {}, 422, "body: it is missing: this takes a body of JSON"),
        (b"[]", JSON, 422, "body: Input should be"),
        (b"{}", JSON, 422, "seconds: Field required"),
        (b'{"seconds": NaN}', JSON, 422, "seconds: "),
        (b'{"seconds": true}', JSON, 422, "seconds: Input should be a valid number"),
    ],
)
async def test_a_body_that_cannot_be_is_refused(
    control: Control, content: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    answer = await send(control, content, headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


async def test_a_body_that_is_too_large_is_refused(control: Control) -> None:
    answer = await send(control, b" " * (MOST_BODY_BYTES + 1), JSON)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "a body has 16,777,216 bytes at most"


async def test_every_wrong_field_is_named(control: Control) -> None:
    body = {"topics": {"a": {"partitions": 0}, "b": "x"}, "brokers": "two", "sped": 1}
    problem = await control.post("/brokers", body, 422)
    told = {each["field"]: each["problem"] for each in problem["errors"]}
    assert told.keys() == {"topics.a.partitions", "topics.b", "brokers", "sped"}
    assert told["sped"] == "there is no such field; did you mean speed?"
    records = {"records": [{"headers": [{"key": "a", "vlaue": "b"}]}]}
    problem = await control.post("/topics/orders/records", records, 422)
    assert problem["errors"] == [
        {"field": "records.0.headers.0.vlaue", "problem": "there is no such field; did you mean value?"}
    ]


async def test_parameters_that_there_are_not_are_refused(control: Control) -> None:
    problem = await control.get("/groups", 422, grop="app")
    assert problem["errors"] == [{"field": "grop", "problem": "this takes no parameters"}]


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), KeyError("a bug")])
async def test_a_bug_is_told_and_logged(
    control: Control, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(clusters, "status_of", fail)
    transport = httpx.ASGITransport(control.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
        answer = await http.get("/status")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["detail"] == f"{type(error).__name__}: {error}"
    assert "GET /status failed" in caplog.text
