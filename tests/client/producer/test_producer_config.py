"""The settings of a producer: Kafka's defaults, and what is refused and why."""

from typing import Any

import pytest

from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.protocol.batches.compression import Compression


def test_the_defaults_are_kafkas() -> None:
    config = ProducerConfig()
    assert (config.batch_size, config.linger_ms, config.buffer_memory) == (16_384, 5, 33_554_432)
    assert (config.max_block_ms, config.max_request_size, config.retries) == (60_000, 1_048_576, (1 << 31) - 1)
    assert (config.required_acks, config.delivery_ms, config.request_timeout_ms) == (-1, 120_000, 30_000)
    assert (config.is_idempotent, config.compression) == (True, Compression.NONE)


@pytest.mark.parametrize(
    ("settings", "what_is_wrong"),
    [
        ({"batch_size": -1}, "batch_size=-1: it is a whole number of 0 or more"),
        ({"linger_ms": 0.5}, "linger_ms=0.5: it is a whole number"),
        ({"retries": True}, "retries=True: it is a whole number"),
        ({"acks": 2}, "acks=2: it is all"),
        ({"compression_type": "brotli"}, "compression_type='brotli': it is one of none, gzip, snappy, lz4, zstd"),
        ({"retry_backoff_ms": 2_000}, "retry_backoff_ms=2000 is at most retry_backoff_max_ms=1000"),
        ({"reconnect_backoff_ms": 2_000}, "reconnect_backoff_ms=2000 is at most reconnect_backoff_max_ms=1000"),
        ({"transactional_id": ""}, "transactional_id='': it is a text that is not empty"),
        ({"enable_idempotence": True, "acks": 1}, "enable_idempotence=True needs acks='all', not 1"),
        ({"enable_idempotence": True, "retries": 0}, "enable_idempotence=True needs retries above 0"),
        ({"max_in_flight_requests_per_connection": 6}, "connection=6 is at most 5 with idempotence"),
        ({"transactional_id": "t", "acks": 1}, "transactional_id needs idempotence: acks='all', not 1"),
        ({"transactional_id": "t", "enable_idempotence": False}, "idempotence: enable_idempotence is not False"),
        ({"delivery_timeout_ms": 30_004}, "delivery_timeout_ms=30004 is at least linger_ms .* 30005"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], what_is_wrong: str) -> None:
    with pytest.raises(ValueError, match=what_is_wrong):
        ProducerConfig.of(settings)


@pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": "0"}, {"retries": 0}, {"enable_idempotence": False}])
def test_idempotence_gives_way_unless_it_is_asked_for(settings: dict[str, Any]) -> None:
    assert not ProducerConfig.of(settings | {"max_in_flight_requests_per_connection": 6}).is_idempotent


def test_the_delivery_timeout_is_what_is_set_or_at_least_what_the_others_need() -> None:
    assert ProducerConfig(linger_ms=200_000).delivery_ms == 230_000
    assert ProducerConfig(delivery_timeout_ms=40_000).delivery_ms == 40_000


def test_an_unknown_setting_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(ValueError, match=r"no setting linger\.ms; did you mean linger_ms\?"):
        ProducerConfig.of({"linger.ms": 5})
    with pytest.raises(ValueError, match="no setting zzz; there are acks, batch_size"):
        ProducerConfig.of({"zzz": 5})
