"""What this server speaks: ApiVersions, and the features of the cluster (KIP-584), with UpdateFeatures, which changes them.

Sources: ``ApiVersionsRequest``, ``KafkaApis.handleApiVersionsRequest``, KIP-511; ``FeatureControlManager.updateFeatures``,
``QuorumController.updateFeatures``.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from groupcoord.broker.storage_backend import storage_errors_as_api_errors
from groupcoord.config.features import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    SETTABLE,
    FeatureLevels,
    check_levels,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.java_hash_order import computed_map_order, string_hash
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from groupcoord.protocol.apis.update_features import UpdatableFeatureResult
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_METADATA_DOWNGRADE = {
    _SAFE_DOWNGRADE: "Refusing to perform the requested downgrade because it might delete metadata information.",
    _UNSAFE_DOWNGRADE: "Unsafe metadata downgrade is not supported in this version.",
}
_DOWNGRADE_WITHOUT_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
RESULTS_UNTIL = 1
"""The last version of UpdateFeatures that says what became of each update."""

Store = Callable[[FeatureLevels], None]
"""Keeps the levels where they outlive the process. Raises BatchError."""


class Features:
    """The levels that the features have now."""

    epoch: int
    """How often they were changed."""
    finalized: tuple[FinalizedFeatureKey, ...]
    """What ApiVersions tells of them: those above 0. The order of a broker differs from run to run."""

    def __init__(self, known: FeatureLevels, levels: Mapping[str, int], node_id: int, store: Store) -> None:
        """``known`` is what was kept, and ``levels`` what is to be otherwise. Raises ValueError."""
        check_levels(levels)
        self._levels = {name: feature.level for name, feature in FEATURES.items()} | {**known.levels, **levels}
        self.epoch, self.finalized = known.epoch, _finalized(self._levels)
        self._node_id = node_id
        self._store = store

    def level(self, name: str) -> int:
        """The level of the feature ``name``."""
        return self._levels[name]

    def update(self, ctx: HandlerContext, call: Call, request: UpdateFeaturesRequest) -> bool:
        """Answer ``call``: all of ``request`` is done, or nothing. Was anything changed?"""
        updates = {each.feature: (each.max_version_level, each.upgrade_type) for each in request.feature_updates}
        levels: dict[str, int] = {}
        try:
            for name in computed_map_order(updates, string_hash):
                levels[name] = self._checked(name, *updates[name])
            if changes := bool(levels) and not request.validate_only:
                with storage_errors_as_api_errors():
                    self._store(
                        FeatureLevels({name: (self._levels | levels)[name] for name in SETTABLE}, self.epoch + 1)
                    )
                self._levels |= levels
                self.epoch, self.finalized = self.epoch + 1, _finalized(self._levels)
        except ApiError as refusal:
            why = f"The update failed for all features since the following feature had an error: {refusal.message}"
            ctx.reply(call, UpdateFeaturesResponse(error_code=refusal.code, error_message=why))
            return False
        results: Iterable[UpdatableFeatureResult] = ()
        if call.version <= RESULTS_UNTIL:
            results = (
                UpdatableFeatureResult(feature=each.feature, error_message="NONE") for each in request.feature_updates
            )
        ctx.reply(call, UpdateFeaturesResponse(results=tuple(results)))
        return changes

    def _checked(self, name: str, level: int, upgrade_type: int) -> int:
        """``level``, if the feature may have it. Raises ApiError."""
        present = self._levels.get(name, 0)
        if not _UPGRADE <= upgrade_type <= _UNSAFE_DOWNGRADE:
            raise _refused(name, level, "The controller does not support the given upgrade type.")
        if level < 0:
            raise _refused(name, level, "A feature version cannot be less than 0.")
        feature = FEATURES.get(name)
        if not (level == 0 if feature is None else feature.lowest <= level <= feature.highest):
            where = f"Local controller {self._node_id}"
            if feature is None:
                raise _refused(name, level, f"{where} does not support this feature.")
            raise _refused(name, level, f"{where} only supports versions {feature.lowest}-{feature.highest}")
        if level < present and upgrade_type == _UPGRADE:
            raise _refused(name, level, _DOWNGRADE_WITHOUT_TYPE)
        if level > present and upgrade_type != _UPGRADE:
            raise _refused(name, level, "Can't downgrade to a newer version.")
        if level < present and name == METADATA_VERSION:  # metadata changed with its highest level
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Unsupported metadata.version downgrade from {present} to {level}. {_METADATA_DOWNGRADE[upgrade_type]}",
            )
        if level < present and name == KRAFT_VERSION:
            raise _refused(name, level, "Can't downgrade the version of this feature.")
        if feature is None:
            raise _refused(name, level, f"Feature {name} not found.")
        return level


def _finalized(levels: Mapping[str, int]) -> tuple[FinalizedFeatureKey, ...]:
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
        if level
    )


def _refused(name: str, level: int, why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {why}")


SOFTWARE_NAME_FROM = 3
ZERO_FEATURES_FROM = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Deviation (scope-of-a-stand-in): plain brokers are stood in for: one, or several that fail only when they are told to and go
# by the first one's configuration. A slow disk delays what is appended to it, and not what Kafka's blocked threads would have
# served meanwhile. The APIs are those served here, fewer than a broker's; listeners speak plain text, are all advertised, and
# stay as they are; there are no Java classes, as loggers that could be told anything or as assignors of one's own; regular
# expressions are read by RE2 itself, of which Kafka's re2j is a port; and of the configurations those are documented that
# something here acts on.
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
