"""UpdateFeatures: what it changes and refuses, and that levels outlive the process. All of Kafka's words are in recordings."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.update_features import FeatureUpdateKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatRequest,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.cluster.test_cluster_core import Counting, ask
from tests.storage.faults import failing

UPGRADE, SAFE, UNSAFE = 1, 2, 3
CLIENT = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def core(**features: int) -> ClusterCore:
    levels = {f"{name}.version": level for name, level in features.items()}
    return ClusterCore(BrokerConfig.of({}), random=Counting(), now_ms=0, features=levels)


def answer(node: ClusterCore, key: ApiKey, request: Any, version: int | None = None) -> Any:
    (reply,) = (each for each in ask(node, key, request, version=version) if isinstance(each, Reply))
    return reply.response


def update(
    node: ClusterCore, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False
) -> UpdateFeaturesResponse:
    keys = tuple(FeatureUpdateKey(feature=f, max_version_level=level, upgrade_type=kind) for f, level, kind in updates)
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    found = answer(node, ApiKey.UPDATE_FEATURES, request, version)
    assert isinstance(found, UpdateFeaturesResponse)
    return found


def levels(node: ClusterCore) -> dict[str, int]:
    found = answer(node, ApiKey.API_VERSIONS, CLIENT).finalized_features
    return {each.name.removesuffix(".version"): each.max_version_level for each in found}


def test_levels_change_and_are_told() -> None:
    node = core()
    assert update(node, ("transaction.version", 0, UNSAFE), ("share.version", 0, SAFE)).error_code == ErrorCode.NONE
    assert "transaction" not in levels(node)
    assert "share" not in levels(node)
    said = update(node, ("transaction.version", 1, UPGRADE), version=1)
    assert [(each.feature, each.error_code) for each in said.results] == [("transaction.version", 0)]
    assert levels(node)["transaction"] == 1
    assert answer(node, ApiKey.API_VERSIONS, CLIENT).finalized_features_epoch == 2
    assert update(node).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "level", "kind", "why"),
    [
        ("transaction.version", 1, 0, "does not support the given upgrade type"),
        ("transaction.version", -1, SAFE, "cannot be less than 0"),
        ("transaction.version", 3, UPGRADE, "Local controller 1 only supports versions 0-2"),
        ("transaction.version", 1, UPGRADE, "without setting the upgrade type"),
        ("kraft.version", 1, SAFE, "Can't downgrade to a newer version"),
        ("nothing.version", 1, UPGRADE, "Local controller 1 does not support this feature"),
        ("nothing.version", 0, UPGRADE, "Feature nothing.version not found"),
        ("metadata.version", 29, SAFE, "it might delete metadata information"),
        ("metadata.version", 29, UNSAFE, "Unsafe metadata downgrade is not supported"),
    ],
)
def test_what_is_refused_changes_nothing(name: str, level: int, kind: int, why: str) -> None:
    node = core()
    before = levels(node)
    refused = update(node, ("share.version", 0, SAFE), (name, level, kind))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message is not None
    assert why in refused.error_message
    assert levels(node) == before


def test_the_version_of_the_quorum_only_rises() -> None:
    node = core(kraft=1)
    assert levels(node)["kraft"] == 1
    assert "Can't downgrade" in str(update(node, ("kraft.version", 0, SAFE)).error_message)


def test_who_only_asks_changes_nothing() -> None:
    node = core()
    assert update(node, ("group.version", 0, SAFE), validate_only=True).error_code == ErrorCode.NONE
    assert levels(node)["group"] == 1


def test_without_its_feature_there_are_no_consumer_groups() -> None:
    joins = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1_000, subscribed_topic_names=("t",),
        topic_partitions=(),
    )  # fmt: skip
    node = core(group=0)
    assert answer(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, joins).error_code == ErrorCode.UNSUPPORTED_VERSION
    update(node, ("group.version", 1, UPGRADE))
    assert answer(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, joins).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("features", "why"), [({"transaction": 3}, "has levels from 0 to 2, and no 3"), ({"metadata": 30}, "can be chosen")]
)
def test_levels_that_a_cluster_cannot_begin_with(features: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        core(**features)


@pytest.mark.slow
def test_levels_outlive_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(**features: int) -> tuple[ClusterCore, DataDirectory]:
        directory = DataDirectory(tmp_path, BrokerConfig.of({}), new_uuid=uuid.uuid4, now_ms=0)
        node = ClusterCore(directory.config, random=Counting(), now_ms=0, storage=directory, features=features)
        return node, directory

    node, directory = begin()
    update(node, ("transaction.version", 1, SAFE))
    directory.close()
    node, directory = begin()
    assert levels(node)["transaction"] == 1
    assert (
        answer(node, ApiKey.API_VERSIONS, CLIENT).finalized_features_epoch == 1
    )  # clients do not believe an older one
    directory.close()
    node, directory = begin(**{"transaction.version": 2})
    assert levels(node)["transaction"] == 2
    with failing(monkeypatch, "pwrite"):
        assert update(node, ("transaction.version", 0, SAFE)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert levels(node)["transaction"] == 2


def test_a_level_that_there_is_none_of_stops_the_start(tmp_path: Path) -> None:
    lines = ['{"groupcoord": "metadata", "version": 1}', '{"features": {"group.version": 4}}', ""]
    (tmp_path / "groupcoord-metadata").write_text("\n".join(lines))
    with pytest.raises(StorageError, match="line 2"):
        DataDirectory(tmp_path, BrokerConfig.of({}), new_uuid=uuid.uuid4, now_ms=0)
