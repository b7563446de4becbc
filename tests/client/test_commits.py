import asyncio

import pytest

from groupcoord.client.client_errors import ConsumerClosedError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import JoinGroupRequest, OffsetCommitRequest
from tests.client.broker import HANG, broker, patiently
from tests.client.test_consumer import committed_by_group, consumer
from tests.client.test_offsets import T, answered, member

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


@patiently
async def test_positions_are_committed_unless_told_otherwise() -> None:
    async with broker() as real, member(real) as consumer:
        await real.produce("t", [b"a", b"b", b"c"])
        while await consumer.position(T) < 3:
            await consumer.getmany(50)
        await consumer.commit()
        assert await consumer.committed() == {T: OffsetAndMetadata(3, 0)}


@patiently
async def test_commits_without_waiting_are_carried_out_in_order() -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, answered(E.COORDINATOR_LOAD_IN_PROGRESS))
        tasks = [consumer.commit_async({T: offset}) for offset in (1, 2, 3)]
        await asyncio.gather(*tasks)
        assert await consumer.committed() == {T: OffsetAndMetadata(3)}
        sent = [request.topics[0].partitions[0].committed_offset for request in real.got(OffsetCommitRequest)]
        assert sent == [1, 1, 2, 3]


@patiently
async def test_a_commit_that_nobody_waits_for_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, answered(E.OFFSET_METADATA_TOO_LARGE))
        task = consumer.commit_async({T: 1})
        await asyncio.wait([task])
        cancelled = consumer.commit_async({T: 1})
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert "OFFSET_METADATA_TOO_LARGE" in caplog.text
        assert [record.levelname for record in caplog.records if record.name.startswith("groupcoord.client")] == [
            "WARNING"
        ]


@patiently
async def test_who_is_closed_commits_nothing() -> None:
    async with broker() as real:
        async with member(real) as consumer:
            pass
        with pytest.raises(ConsumerClosedError):
            await consumer.commit()
        with pytest.raises(ConsumerClosedError):
            consumer.commit_async()


@patiently
async def test_commits_by_itself() -> None:
    async with broker() as real:
        await real.produce("t", [b"a", b"b"])
        async with consumer(real, auto_commit_interval_ms=0) as one:
            while await one.committed() != {T: OffsetAndMetadata(2, 0)}:
                await one.getmany(20)


@patiently
async def test_a_commit_by_itself_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        async with consumer(real) as one:
            while not await one.getmany(50):
                pass
            real.answers(OffsetCommitRequest, answered(E.OFFSET_METADATA_TOO_LARGE))
        assert "trouble with commits: 1 offset not committed: " in caplog.text


@patiently
async def test_a_block_that_ends_by_an_error_commits_only_what_is_done() -> None:
    async with broker() as real:
        await real.produce("t", [b"a", b"b", b"c"])

        async def stumble() -> None:
            async with consumer(real) as one:
                async for record in one:
                    if record.value == b"b":
                        raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await stumble()
        assert await committed_by_group(real) == {T: OffsetAndMetadata(1, 0)}


@patiently
async def test_last_commits_do_not_last_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.client.consumer.CLOSE_TIMEOUT_MS", 50)
    async with broker() as real:
        async with consumer(real) as one:
            while not one.assignment():
                await one.getmany(50)
            real.answers(OffsetCommitRequest, HANG)
            committing = one.commit_async({T: 1})
            await real.gets(OffsetCommitRequest)
        assert committing.cancelled()


@patiently
async def test_a_rebalance_commits_first() -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        async with consumer(real) as one:
            while not await one.getmany(50):
                pass
            joins = len(real.got(JoinGroupRequest))
            one.enforce_rebalance("let us see")
            while len(real.got(JoinGroupRequest)) == joins:
                await one.getmany(1)
            names = [type(request).__name__ for request in real.requests]
            last_join = len(names) - 1 - names[::-1].index("JoinGroupRequest")
            assert "OffsetCommitRequest" in names[:last_join]
            assert real.got(JoinGroupRequest)[-1].reason == "let us see"


@patiently
async def test_offsets_may_come_with_metadata() -> None:
    async with broker({"t": 3}) as real, member(real) as consumer:
        await consumer.commit({T: 1, ("t", 1): (2, "two"), ("t", 2): OffsetAndMetadata(3, metadata="three")})
        assert await consumer.committed(T, ("t", 1), ("t", 2)) == {
            T: OffsetAndMetadata(1),
            ("t", 1): OffsetAndMetadata(2, metadata="two"),
            ("t", 2): OffsetAndMetadata(3, metadata="three"),
        }
        for wrong in ("1", (1,), (1, 2, 3)):
            with pytest.raises(ValueError, match=r"t-0: .* is not an offset: a number, \(number, metadata\) or an Off"):
                await consumer.commit({T: wrong})  # type: ignore[dict-item]
