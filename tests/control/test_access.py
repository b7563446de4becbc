"""Who may use the control API."""

import pytest

from groupcoord.control.access import is_loopback
from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def test_who_has_the_token_is_let_in() -> None:
    async with controlled(token="s3cret") as control:
        answer = await control.ask("GET", "/status")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["detail"] == "a token is needed: Authorization: Bearer TOKEN"
        for given, status in (
            ("Bearer s3cret", 200),
            ("bearer s3cret", 200),
            ("Bearer other", 401),
            ("Basic s3cret", 401),
        ):
            answer = await control.http.get("/status", headers={"Authorization": given})
            assert answer.status_code == status, given
        assert (await control.http.get("/openapi.json")).status_code == 401
        assert await control.get("/health") == {"status": "ok"}
        headers = {"Authorization": "Bearer s3cret", "Host": "kafka.example", "Origin": "https://page.example"}
        assert (await control.http.get("/status", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Host", "localhost:9093", 200),
        ("Host", "[::1]:9093", 200),
        ("Host", "kafka.localhost", 200),
        ("Host", "rebound.example:9093", 403),
        ("Origin", "http://127.0.0.1:9093", 200),
        ("Origin", "https://page.example", 403),
        ("Origin", "null", 403),
    ],
)
async def test_without_a_token_no_web_page_gets_in(control: Control, name: str, value: str, status: int) -> None:
    answer = await control.http.post("/reset", headers={name: value})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["detail"].startswith(f"{name}: {value} is not this machine")


@pytest.mark.parametrize(
    ("host", "is_so"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
async def test_addresses_of_this_machine_are_known(host: str, is_so: bool) -> None:
    assert is_loopback(host) is is_so
