"""The answer to an unexpected error, in every API and version, is byte for byte what Kafka's own classes make.

``error_responses.txt`` holds what they made of the requests of ``error_samples``: see there how to make it anew.
"""

import struct
from pathlib import Path

import pytest

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response, parse_request
from tests.protocol.error_samples import samples

VECTORS = [line.split() for line in Path(__file__).with_name("error_responses.txt").read_text("ascii").splitlines()]
A_BUG, NO_TEXT = f"06{b'a bug'.hex()}", "00"
"""What the exception said, which one class repeats, and which nobody is told here."""


@pytest.mark.slow
def test_as_kafka() -> None:
    for key, version in sorted({(int(key), int(version)) for key, version, *_ in VECTORS}):
        api = APIS[key]
        header = struct.pack(">hhih", key, version, 7, -1) + b"\0" * api.request_codec(version).flexible
        response_tags = b"\0" * (api.response_codec(version).flexible and key != ApiKey.API_VERSIONS)
        for error, request, expected in [vector[2:] for vector in VECTORS if vector[:2] == [str(key), str(version)]]:
            message = parse_request(header + bytes.fromhex(request.removeprefix("-"))).message
            response = api.error_response(message, version, ErrorCode(int(error)))
            if expected == "none":
                assert response is None
            else:
                answer = encode_response(api, version, 7, response)
                assert answer[4:].hex() == (b"\0\0\0\7" + response_tags).hex() + expected.replace(A_BUG, NO_TEXT)


def test_every_api_and_version_is_there() -> None:
    served = {(key, version) for key, api in APIS.items() for version in range(api.min_version, api.max_version + 1)}
    assert {(int(key), int(version)) for key, version, *_ in VECTORS} == served


@pytest.mark.slow
def test_the_vectors_are_of_the_samples() -> None:
    assert [vector[:4] for vector in VECTORS] == [line.split() for line in samples()]


def test_nothing_to_say_to_a_request_that_was_not_understood() -> None:
    assert APIS[ApiKey.API_VERSIONS].error_response(None, 99, ErrorCode.UNKNOWN_SERVER_ERROR) is None
