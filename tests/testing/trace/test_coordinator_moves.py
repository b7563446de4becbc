"""Moves of coordinators without records are one line, in the text of a trace as in its diagram."""

import re

import pytest

from groupcoord.testing import Cluster

pytestmark = pytest.mark.asyncio
CONFIG = {"offsets.topic.num.partitions": 4, "transaction.state.log.num.partitions": 4}


async def test_a_failure_tells_in_full_only_of_coordinators_that_have_records() -> None:
    async with Cluster(topics={"orders": 1}, brokers=3, config=CONFIG, clock="manual") as kafka:
        await kafka.manual_member("app").join()
        await kafka.manual_producer("billing").init()
        for broker_id in kafka.brokers:
            await kafka.broker(broker_id).kill()
        await kafka.clock.advance(15)
        for broker_id in kafka.brokers:
            await kafka.broker(broker_id).start()
        text = kafka.trace.text(fold=True, since=14.0)
        several = "start of 2 coordinators of __consumer_offsets without records; start of 1 coordinator of "
        assert re.findall("(?<= @15000 )(?:start|read) .*?(?=  ←|$)", text, re.MULTILINE) == [
            "read 1 record of __consumer_offsets-1 in 0 ms: 1 group",
            f"{several}__transaction_state without records",
            "read 1 record of __transaction_state-1 in 0 ms: 1 transactional id",
            "start of 2 coordinators of __transaction_state without records",
        ]
        assert "in sync of __consumer_offsets-1: 1, 2, 3 (before: 3)" in text
        assert "in sync of __consumer_offsets-2" not in text
        assert "nobody leads 2 partitions of __transaction_state from now on" in kafka.trace.mermaid()
        (first, last) = re.findall(
            r"^#(\d+)–#(\d+) @15000 start of 2 coordinators of __transaction_state", text, re.MULTILINE
        )[0]
        assert int(last) - int(first) == 3
        unlinked = kafka.trace.text(fold=True, since=14.0, links=False, real=True).splitlines()[-1]
        assert re.fullmatch(
            r"@15000 \(\d+ ms\) start of 2 coordinators of __transaction_state without records", unlinked
        )
