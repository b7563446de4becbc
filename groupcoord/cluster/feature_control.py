"""The features of the cluster and their levels (KIP-584), and UpdateFeatures, which changes them.

Sources: ``FeatureControlManager.updateFeatures``, ``QuorumController.updateFeatures``.
"""

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
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_order
from groupcoord.protocol.apis.api_versions import FinalizedFeatureKey
from groupcoord.protocol.apis.update_features import UpdatableFeatureResult
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
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
"""The last version of UpdateFeatures whose response lists a result for each feature."""

Store = Callable[[FeatureLevels], None]
"""Stores the feature levels. Raises BatchError."""


class Features:
    """The current feature levels (``FeatureControlManager``)."""

    epoch: int
    """The number of changes."""
    finalized: tuple[FinalizedFeatureKey, ...]
    """The finalized features in ApiVersions: those above level 0. Their order in Kafka differs from run to run."""

    def __init__(self, known: FeatureLevels, levels: Mapping[str, int], node_id: int, store: Store) -> None:
        """``known`` are the stored levels, which ``levels`` override. Raises ValueError."""
        check_levels(levels)
        self._levels = {name: feature.level for name, feature in FEATURES.items()} | {**known.levels, **levels}
        self.epoch, self.finalized = known.epoch, _finalized(self._levels)
        self._node_id = node_id
        self._store = store

    def level(self, name: str) -> int:
        """The level of the feature ``name``."""
        return self._levels[name]

    def update(self, ctx: HandlerContext, call: Call, request: UpdateFeaturesRequest) -> None:
        """Apply all updates of ``request`` or none, and respond."""
        updates = {each.feature: (each.max_version_level, each.upgrade_type) for each in request.feature_updates}
        levels: dict[str, int] = {}
        try:
            for name in hash_order(updates):
                levels[name] = self._checked(name, *updates[name])
            if levels and not request.validate_only:
                with storage_errors_as_api_errors():
                    self._store(
                        FeatureLevels({name: (self._levels | levels)[name] for name in SETTABLE}, self.epoch + 1)
                    )
                self._levels |= levels
                self.epoch, self.finalized = self.epoch + 1, _finalized(self._levels)
        except ApiError as refusal:
            why = f"The update failed for all features since the following feature had an error: {refusal.message}"
            ctx.reply(call, UpdateFeaturesResponse(error_code=refusal.code, error_message=why))
            return
        results: Iterable[UpdatableFeatureResult] = ()
        if call.version <= RESULTS_UNTIL:
            results = (
                UpdatableFeatureResult(feature=each.feature, error_message="NONE") for each in request.feature_updates
            )
        ctx.reply(call, UpdateFeaturesResponse(results=tuple(results)))

    def _checked(self, name: str, level: int, upgrade_type: int) -> int:
        """``level``, if the update is allowed. Raises ApiError."""
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
        if level < present and name == METADATA_VERSION:  # the highest level changed the metadata format
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
