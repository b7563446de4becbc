"""ApiVersions: what this server speaks. Sources: ``ApiVersionsRequest``, ``KafkaApis.handleApiVersionsRequest``, KIP-511."""

import re

from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.messages.api_versions import ApiVersion

SOFTWARE_NAME_FROM = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Deviation: the APIs are those served here, not all of a broker's; and no features are named (``group.version`` would
# promise consumer groups of KIP-848).
_SERVED = tuple(
    ApiVersion(api_key=api.key, min_version=api.advertised_min, max_version=api.max_version)
    for api in sorted(APIS.values(), key=lambda api: api.key)
)
_ANSWER = ApiVersionsResponse(api_keys=_SERVED)
_ONLY_THIS = tuple(version for version in _SERVED if version.api_key == ApiKey.API_VERSIONS)
_UNSUPPORTED = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ONLY_THIS)
_INVALID = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())


def api_versions(turn: Turn, call: Call, request: ApiVersionsRequest | None) -> None:
    """Answer ``call``. ``request`` is None if its version is unknown: the answer, in version 0, says which are known."""
    if request is None:
        turn.reply(call._replace(version=0), _UNSUPPORTED)
    elif call.version >= SOFTWARE_NAME_FROM and not names_its_software(request):
        turn.reply(call, _INVALID)
    else:
        turn.reply(call, _ANSWER)


def names_its_software(request: ApiVersionsRequest) -> bool:
    """Are name and version of the client's software of the characters that Kafka allows?"""
    return all(map(_SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version)))
