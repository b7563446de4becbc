"""What is told of topics, records, offsets and transactions to a cluster of groupcoord is told to a real Kafka, too."""

import pytest

from groupcoord.testing import RemoteCluster
from tests.conformance.settings import FAST
from tests.conftest import StartRealKafka
from tests.testing import (
    test_record_writing,
    test_records,
    test_seeded_offsets,
    test_topic_settings,
    test_transaction_handle,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.real_kafka]


async def test_the_same_steps_on_a_real_kafka(start_real_kafka: StartRealKafka) -> None:
    with start_real_kafka(FAST.properties) as broker:
        async with RemoteCluster(broker.bootstrap_servers) as remote:
            await test_seeded_offsets.story(remote)  # the first that anybody asks of the coordinator
            await test_records.story(remote)
            await remote.create_topic("orders", 2)
            await test_transaction_handle.story(remote)
            await test_topic_settings.story(remote)
            await test_record_writing.story(remote)
