"""Keys and values as their user wants them, and records that cannot be read so."""

import json
from typing import Any

import pytest

from groupcoord.client.client_errors import RecordDeserializationError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.consumer import Consumer
from tests.client.broker import Broker, broker, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T, T1 = ("t", 0), ("t", 1)


def consumer(real: Broker, **how: Any) -> Consumer:
    settings = {"group_id": "g", "auto_offset_reset": "earliest", "retry_backoff_ms": 1, **how}
    return Consumer("t", bootstrap_servers=real.address, **settings)


async def polled(one: Consumer) -> dict[Any, list[Any]]:
    while not (records := await one.getmany(50)):
        pass
    return {partition: [record.value for record in of] for partition, of in records.items()}


@patiently
async def test_keys_and_values_are_deserialized_and_none_stays_none() -> None:
    async with broker() as real:
        await real.produce("t", [b'{"a": 1}', b"2"], key=b"k")
        await real.produce("t", [b"3"])
        async with consumer(real, key_deserializer=bytes.decode, value_deserializer=json.loads) as one:
            records = [await one.getone() for _ in range(3)]
        assert [(record.key, record.value) for record in records] == [("k", {"a": 1}), ("k", 2), (None, 3)]


@patiently
async def test_only_keys() -> None:
    async with broker() as real:
        await real.produce("t", [b"1"], key=b"k")
        async with consumer(real, key_deserializer=bytes.decode) as one:
            (record,) = (await one.getmany(10_000))[T]
        assert (record.key, record.value) == ("k", b"1")


@patiently
async def test_what_is_in_front_of_a_bad_record_is_handed_out_and_the_bad_one_stays_next() -> None:
    async with broker({"t": 2}) as real:
        await real.produce("t", [b"1", b"2", b"not json", b"4"])
        async with consumer(real, value_deserializer=json.loads) as one:
            assert await polled(one) == {T: [1, 2]}
            for _ in range(2):
                with pytest.raises(
                    RecordDeserializationError, match="the value of the record at offset 2 of t-0"
                ) as raised:
                    await polled(one)
                assert (raised.value.partition, raised.value.offset) == (T, 2)
                assert isinstance(raised.value.__cause__, ValueError)
            await real.produce("t", [b"5"], 1)
            while True:
                try:
                    values = await polled(one)
                except RecordDeserializationError:
                    continue
                break
            assert values == {T1: [5]}
            one.seek(T, 3)
            assert await polled(one) == {T: [4]}
            await one.commit()
            assert await one.committed(T) == {T: OffsetAndMetadata(4, 0)}


@patiently
async def test_one_by_one_the_bad_record_stays_next_and_is_not_committed() -> None:
    async with broker() as real:
        await real.produce("t", [b"1", b"x"], key=b"\xff")
        async with consumer(real, value_deserializer=int) as one:
            assert (await one.getone()).value == 1
            for _ in range(2):
                with pytest.raises(RecordDeserializationError, match=r"seek\(\('t', 0\), 2\) passes over it"):
                    await one.getone()
        async with consumer(real, key_deserializer=bytes.decode) as later:
            assert await later.committed(T) == {T: OffsetAndMetadata(1)}
            with pytest.raises(RecordDeserializationError, match="the key of the record at offset 1"):
                await later.getone()
