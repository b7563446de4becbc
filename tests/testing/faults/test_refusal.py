"""A refusal is heard at every version, or it is known that it would not be."""

import pytest

from groupcoord.core.effects import Call
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import ApiVersionsResponse
from groupcoord.testing.faults import ApiVersions
from groupcoord.testing.faults.refusal import refusal
from tests.testing.faults.support import requests_of_every_version

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.slow
def test_every_api_and_version_says_the_error_if_it_has_a_place_for_it() -> None:
    silent = set()
    for api, version, request in requests_of_every_version():
        call = Call(1, 2, api, version, "c", "/127.0.0.1")
        reply = refusal(call, request, CODE)
        if reply is None:
            silent.add((api.name, version))
        else:
            frame = encode_response(api, version, 2, reply.response)
            assert f"error_code={int(CODE)}" in repr(parse_response(api, version, frame[4:])[1]).replace(
                repr(CODE), str(int(CODE))
            )
    # Each has a sample that names nothing, or wants no answer; what it has a place for is among the others.
    assert silent == {
        *(("Produce", version) for version in range(3, 14)),
        *(("Fetch", version) for version in range(4, 7)),
        *(("Metadata", version) for version in range(13)),
        *(("OffsetCommit", version) for version in range(2, 11)),
        ("OffsetFetch", 1),
    }


def test_an_unknown_version_of_api_versions_is_refused_in_version_0() -> None:
    reply = refusal(Call(1, 2, ApiVersions, 99, "c", "/127.0.0.1"), None, CODE)
    assert reply is not None
    assert reply.call.version == 0
    assert reply.response == ApiVersionsResponse(error_code=CODE)
