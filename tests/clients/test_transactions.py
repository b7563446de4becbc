"""There are no transactions here: who asks for one is told so at once, instead of waiting for a coordinator for ever."""

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.clients.cluster import Cluster
from tests.clients.support import PATIENCE_S, unique


@pytest.fixture(autouse=True)
def only_without_transactions(cluster: Cluster) -> None:
    if not cluster.emulated:
        pytest.skip("a real broker has transactions")


@pytest.mark.asyncio
async def test_aiokafka_is_refused(cluster: Cluster) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=unique("id"))

    with pytest.raises(aiokafka.errors.TransactionalIdAuthorizationFailed):
        await producer.start()
    await producer.stop()


def test_kafka_python_is_refused(cluster: Cluster) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=unique("id"))

    with pytest.raises(kafka.errors.TransactionalIdAuthorizationFailedError):
        producer.init_transactions()
    producer.close(PATIENCE_S)


def test_confluent_is_refused(cluster: Cluster) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("id")})

    with pytest.raises(confluent_kafka.KafkaException) as refusal:
        producer.init_transactions(PATIENCE_S)
    assert refusal.value.args[0].name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    with pytest.raises(confluent_kafka.KafkaException):
        producer.close()
