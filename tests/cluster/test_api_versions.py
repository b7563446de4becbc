"""ApiVersions says what is served, in every version, and is the one API that answers a version it does not know."""

import pytest

from groupcoord.cluster.api_versions import api_versions
from groupcoord.cluster.feature_control import Features
from groupcoord.config.features import UNCHANGED
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ApiVersionsRequest, ApiVersionsResponse


def ask(version: int, request: ApiVersionsRequest | None) -> tuple[int, ApiVersionsResponse]:
    """(version answered in, answer)."""
    ctx = HandlerContext(0, Call(1, 1, APIS[ApiKey.API_VERSIONS], version, "test", "/127.0.0.1"))
    api_versions(ctx, ctx.origin, request, Features(UNCHANGED, {}, 1, lambda _: None))  # type: ignore[arg-type]
    (reply,) = ctx.effects
    assert isinstance(reply, Reply)
    return reply.call.version, reply.response


@pytest.mark.parametrize("version", range(5))
def test_every_served_api_is_named_with_its_versions(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7.1")
    answered_in, answer = ask(version, request)
    assert answered_in == version
    assert answer.error_code == ErrorCode.NONE
    named = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert named == {key: (api.advertised_min, api.max_version) for key, api in APIS.items()}


def test_not_all_of_a_brokers_apis_are_named() -> None:
    """Deviation (scope-of-a-stand-in)."""
    _, answer = ask(4, ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7.1"))
    share_group_heartbeat, describe_acls = 76, 29
    assert not {share_group_heartbeat, describe_acls} & {api.api_key for api in answer.api_keys}


@pytest.mark.parametrize(("version", "supported"), [(3, 1), (4, 7)])
def test_the_features_are_those_of_a_new_cluster(version: int, supported: int) -> None:
    """KIP-584; only from v4 on may one begin with version 0."""
    _, answer = ask(version, ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7.1"))
    assert len(answer.supported_features) == supported
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert (levels["group.version"], levels["metadata.version"]) == (1, 30)
    assert answer.finalized_features_epoch == 0


def test_produce_is_advertised_from_0_for_librdkafka() -> None:
    _, answer = ask(0, ApiVersionsRequest())
    assert next(api for api in answer.api_keys if api.api_key == ApiKey.PRODUCE).min_version == 0


def test_an_unknown_version_is_answered_in_version_0_with_the_range() -> None:
    answered_in, answer = ask(99, None)
    assert answered_in == 0
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("-kcat", "1"), ("kcat", "1."), ("kc at", "1"), ("kcat", "")])
def test_software_that_does_not_say_its_name_is_refused_from_v3_on(name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    _, answer = ask(3, request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == ()
    assert ask(2, request)[1].error_code == ErrorCode.NONE
