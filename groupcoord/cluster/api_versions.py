"""ApiVersions: the APIs, versions and features that the server supports (KIP-511).

Sources: ``ApiVersionsRequest``, ``KafkaApis.handleApiVersionsRequest``.
"""

import re

from groupcoord.cluster.feature_control import Features
from groupcoord.config.features import (
    FEATURES,
)
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion, SupportedFeatureKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)

SOFTWARE_NAME_FROM = 3
ZERO_FEATURES_FROM = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Deviation (scope-of-a-stand-in): the cluster has one broker, or several that share the first one's configuration and fail
# only on request. A slow disk delays appends to it, but not the other requests that Kafka's blocked threads would delay.
# Fewer APIs are served than by a Kafka broker. Listeners are plain text, are all advertised, and cannot be changed. There are
# no Java classes, such as loggers or custom assignors. Regular expressions are evaluated by RE2 itself, of which Kafka's re2j
# is a port. Only the configurations that are implemented here have a documentation text.
_SERVED = tuple(
    ApiVersion(api_key=api.key, min_version=api.advertised_min, max_version=api.max_version)
    for api in sorted(APIS.values(), key=lambda api: api.key)
)
_SUPPORTED = tuple(
    SupportedFeatureKey(name=name, min_version=each.lowest, max_version=each.highest) for name, each in FEATURES.items()
)
# A feature may have the minimum version 0 only from v4 on.
_OLD_SUPPORTED = tuple(feature for feature in _SUPPORTED if feature.min_version)
_ONLY_THIS = tuple(version for version in _SERVED if version.api_key == ApiKey.API_VERSIONS)
_UNSUPPORTED = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ONLY_THIS)
_INVALID = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())


def api_versions(ctx: HandlerContext, call: Call, request: ApiVersionsRequest | None, features: Features) -> None:
    """Respond to ``call``. ``request`` is None for an unknown version: the response, in version 0, lists the supported ones."""
    if request is None:
        ctx.reply(call._replace(version=0), _UNSUPPORTED)
    elif call.version >= SOFTWARE_NAME_FROM and not names_its_software(request):
        ctx.reply(call, _INVALID)
    else:
        answer = ApiVersionsResponse(
            api_keys=_SERVED,
            supported_features=_SUPPORTED if call.version >= ZERO_FEATURES_FROM else _OLD_SUPPORTED,
            finalized_features=features.finalized,
            finalized_features_epoch=features.epoch,
        )
        ctx.reply(call, answer)


def names_its_software(request: ApiVersionsRequest) -> bool:
    """Are the name and version of the client's software made of the characters that Kafka allows?"""
    return all(map(_SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version)))
