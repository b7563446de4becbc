from typing import Any

import pytest

from groupcoord.partitioners.partitioners import KEYED, fnv1a, murmur2, positive
from tests.partitioners.known import KNOWN

COLUMNS = {
    "partition": "java",
    "librdkafka_consistent": "librdkafka-consistent",
    "librdkafka_fnv1a": "librdkafka-fnv1a",
    "sarama_hash": "sarama-hash",
    "sarama_reference_hash": "sarama-reference-hash",
}


@pytest.mark.parametrize("case", KNOWN["murmur2"], ids=lambda case: case["key_hex"][:20] or "empty")
def test_keys_hash_as_everywhere(case: dict[str, Any]) -> None:
    key = bytes.fromhex(case["key_hex"])
    assert murmur2(key) == case["murmur2"]
    assert positive(murmur2(key)) == case["positive"]
    assert fnv1a(key) == case["fnv1a_32"]
    for column, name in COLUMNS.items():
        assert {count: KEYED[name](key, int(count)) for count in case[column]} == case[column]


def test_librdkafkas_murmur2_is_javas() -> None:
    assert KEYED["librdkafka-murmur2"](b"kafka", 10) == KEYED["java"](b"kafka", 10) == 0
