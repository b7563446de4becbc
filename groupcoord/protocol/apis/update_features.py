"""UpdateFeatures (API key 57): request and response messages, and their Api (KIP-584, KIP-778)."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class FeatureUpdateKey:
    """A feature and the level that it is to have; 0 is what it has where it was never raised."""

    feature: str
    max_version_level: int
    allow_downgrade: bool = False  # v0: the level may become lower, and then must
    upgrade_type: int = 1  # v1+: 1 to raise it, 2 to lower it without loss, 3 to lower it whatever gets lost


@message
class UpdateFeaturesRequest:
    """All of ``feature_updates`` happen, or none."""

    timeout_ms: int = 60_000  # not used
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: bool = False  # v1+: say what would be answered, and change nothing


@message
class UpdatableFeatureResult:
    """What became of one update."""

    feature: str = ""
    error_code: int = 0
    error_message: str | None = None


@message
class UpdateFeaturesResponse:
    """The first error stands for the whole request."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: tuple[UpdatableFeatureResult, ...] = ()  # up to v1, and only without an error


API = Api(
    key=ApiKey.UPDATE_FEATURES,
    request=UpdateFeaturesRequest,
    response=UpdateFeaturesResponse,
    min_version=0,
    max_version=2,
    summary="Raise or lower the levels of features (kafka-features.sh)",
)
