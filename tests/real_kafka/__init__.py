"""A real Kafka broker for tests: in a container, or where there is no Docker, as a child process.

``KAFKA_VERSION`` says which Kafka (4.3.1 unless told), ``KAFKA_IMAGE`` which image. In tests, ask for the fixture
``real_kafka``, or for ``start_real_kafka`` to have a fresh broker with properties of your own.
"""

from tests.real_kafka.broker import Broker, BrokerFailed, RealKafkaUnavailable
from tests.real_kafka.image import kafka_version
from tests.real_kafka.starting import RUNNING, running

__all__ = ["RUNNING", "Broker", "BrokerFailed", "RealKafkaUnavailable", "kafka_version", "running"]
