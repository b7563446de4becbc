"""ApiVersions: what this server speaks. Sources: ``ApiVersionsRequest``, ``KafkaApis.handleApiVersionsRequest``, KIP-511."""

import re

from groupcoord.cluster.features import Features
from groupcoord.config.features import FEATURES
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion, SupportedFeatureKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME_FROM = 3
ZERO_FEATURES_FROM = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Deviation (scope-of-a-stand-in): plain brokers are stood in for: one, or several that do not fail by themselves and go by the
# first one's configuration. The APIs are those served here, fewer than a broker's; listeners speak plain text, are all
# advertised, and stay as they are; there are no Java classes, as loggers that could be told anything or as assignors of one's
# own; regular expressions are read by RE2 itself, of which Kafka's re2j is a port; and of the configurations those are
# documented that something here acts on.
_SERVED = tuple(
    ApiVersion(api_key=api.key, min_version=api.advertised_min, max_version=api.max_version)
    for api in sorted(APIS.values(), key=lambda api: api.key)
)
_SUPPORTED = tuple(
    SupportedFeatureKey(name=name, min_version=each.lowest, max_version=each.highest) for name, each in FEATURES.items()
)
# Only from v4 on may a feature begin with version 0.
_OLD_SUPPORTED = tuple(feature for feature in _SUPPORTED if feature.min_version)
_ONLY_THIS = tuple(version for version in _SERVED if version.api_key == ApiKey.API_VERSIONS)
_UNSUPPORTED = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ONLY_THIS)
_INVALID = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())


def api_versions(ctx: HandlerContext, call: Call, request: ApiVersionsRequest | None, features: Features) -> None:
    """Answer ``call``. ``request`` is None if its version is unknown: the answer, in version 0, says which are known."""
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
    """Are name and version of the client's software of the characters that Kafka allows?"""
    return all(map(_SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version)))
