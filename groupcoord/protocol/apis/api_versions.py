"""ApiVersions (API key 18): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class ApiVersionsRequest:
    """Ask for APIs and versions: a client's first request. v3 adds who the client is and is flexible (KIP-511)."""

    client_software_name: str = ""  # v3+
    client_software_version: str = ""  # v3+


@message
class ApiVersion:
    """The versions of one API."""

    api_key: int
    min_version: int
    max_version: int


@message
class SupportedFeatureKey:
    """Versions of a cluster feature that the broker supports: v3+ (KIP-584)."""

    name: str = ""
    min_version: int = 0
    max_version: int = 0


@message
class FinalizedFeatureKey:
    """Versions of a cluster feature that are in force: v3+ (KIP-584)."""

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@message
class ApiVersionsResponse:
    """All APIs with their versions.

    v1 adds the throttle time, v3 is flexible and adds features (KIP-584), v4 lets a feature start at 0.

    Errors: UNSUPPORTED_VERSION, then in version 0 and with the versions of ApiVersions alone (KIP-511); INVALID_REQUEST for a
    client name or version that is not made of letters, digits, dots and dashes.
    """

    error_code: int = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0  # v1+
    supported_features: tuple[SupportedFeatureKey, ...] = ()  # v3+, tag 0
    finalized_features_epoch: int = -1  # v3+, tag 1; -1: unknown
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()  # v3+, tag 2
    zk_migration_ready: bool = False  # v3+, tag 3; of the past


API = Api(
    key=ApiKey.API_VERSIONS,
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
    min_version=0,
    max_version=4,
    summary="Say which APIs are served, at which versions",
)
