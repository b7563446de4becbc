import pytest

from groupcoord.client.settings import MemberSettings


def test_the_defaults_are_kafkas() -> None:
    settings = MemberSettings(group_id="g")
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms, settings.max_poll_interval_ms) == (
        45_000,
        3_000,
        300_000,
    )


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"group_id": ""}, "a group has a name"),
        ({"instance_id": ""}, "an instance id is not empty"),
        ({"heartbeat_interval_ms": 45_000}, "must be above 0 and below session_timeout_ms=45000"),
        ({"heartbeat_interval_ms": 0}, "must be above 0"),
        ({"max_poll_interval_ms": 0}, "are above 0"),
        ({"request_timeout_ms": 0}, "are above 0"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms=-1 is between 0 and"),
        ({"retry_backoff_ms": 5, "retry_backoff_max_ms": 4}, "retry_backoff_ms=5 is between 0 and"),
    ],
)
def test_what_can_never_work_is_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        MemberSettings(**{"group_id": "g", **settings})  # type: ignore[arg-type]
