"""The table of APIs, against what a real broker advertises."""

import pytest

from groupcoord.protocol.apis import APIS, Api, ApiKey
from tests.protocol.samples import name_of

# ApiVersions of a Kafka 4.3.1 broker: the APIs that are here too.
ADVERTISED = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 6), 16: (0, 5), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 32: (1, 4),
    37: (0, 3), 42: (0, 2), 44: (0, 1), 47: (0, 0), 60: (0, 2),
}  # fmt: skip


def test_the_same_versions_are_advertised() -> None:
    assert {int(key): (api.advertised_min, api.max_version) for key, api in APIS.items()} == ADVERTISED


def test_only_produce_is_advertised_wider_than_it_is_served() -> None:
    assert [api.name for api in APIS.values() if api.advertised_min != api.min_version] == ["Produce"]
    assert not APIS[ApiKey.PRODUCE].serves(2)


@pytest.mark.parametrize("api", APIS.values(), ids=name_of)
def test_an_api_serves_its_range(api: Api) -> None:
    served = [version for version in range(-1, 30) if api.serves(version)]
    assert served == list(range(api.min_version, api.max_version + 1))


@pytest.mark.parametrize("api", APIS.values(), ids=name_of)
def test_names_belong_together(api: Api) -> None:
    assert api.name.upper() == api.key.name.replace("_", "")
    assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
