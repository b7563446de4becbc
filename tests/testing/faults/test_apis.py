import pytest

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupcoord.testing import faults
from groupcoord.testing.faults import Heartbeat
from groupcoord.testing.faults.apis import BY_NAME, api_of, nearest


@pytest.mark.parametrize("what", [Heartbeat, HeartbeatRequest, ApiKey.HEARTBEAT, "Heartbeat"])
def test_an_api_has_four_names(what: object) -> None:
    assert api_of(what) is Heartbeat  # type: ignore[arg-type]


def test_every_api_is_there_by_its_name() -> None:
    assert {name: getattr(faults, name) for name in BY_NAME} == {api.name: api for api in APIS.values()}
    assert set(BY_NAME) <= set(faults.__all__)


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("heart_beat", "there is no API 'heart_beat'; do you mean Heartbeat?"),
        ("Xyzzy", "there is no API 'Xyzzy'; there is ApiVersions, CreatePartitions"),
        (HeartbeatResponse, "HeartbeatResponse is not the class of a request; do you mean HeartbeatRequest?"),
        (99, "99 is no API"),
        (True, "True is no API"),
        (["Fetch"], "['Fetch'] is no API"),
    ],
)
def test_what_is_no_api_is_refused_with_the_nearest_that_is(what: object, complaint: str) -> None:
    with pytest.raises(ValueError) as problem:  # noqa: PT011 - the text is looked at
        api_of(what)  # type: ignore[arg-type]
    assert str(problem.value).startswith(complaint)


def test_of_many_names_none_is_listed() -> None:
    assert nearest("xyzzy", [f"name {number}" for number in range(31)]) == ""
