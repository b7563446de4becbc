"""A client beside an attack, in a process of its own: it produces, reads, commits and asks, and must be answered all the time.

``python -m tests.reliability.well_behaved HOST PORT`` does so until its stdin ends, then prints what it saw as JSON.
"""

import json
import select
import subprocess
import sys
from typing import Any, Self

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from groupcoord.protocol.messages.create_topics import CreatableTopic
from groupcoord.protocol.messages.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages.metadata import MetadataRequestTopic
from groupcoord.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.messages.produce import PartitionProduceData, TopicProduceData
from tests.conformance.batches import batch
from tests.reliability.talk import Talk

TOPIC = "side"
PAUSE_SECONDS = 0.01


class WellBehaved:
    """That client, while its block runs; afterwards ``longest_ms``, ``rounds`` and ``problem`` say what it saw."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.longest_ms = 0.0
        self.rounds = 0
        self.problem: str | None = None
        self._address = address

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", __name__, self._address[0], str(self._address[1])]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        seen = json.loads(self._process.communicate("")[0])
        self.longest_ms, self.rounds, self.problem = seen["longest_ms"], seen["rounds"], seen["problem"]


def live(address: tuple[str, int]) -> dict[str, Any]:
    """Rounds of requests until stdin ends."""
    rounds = 0
    problem: str | None = None
    with Talk(address) as talk:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        talk.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,)))
        talk.longest_ms = 0.0
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        try:
            while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
                one_round(talk, rounds)
                rounds += 1
        except (OSError, AssertionError) as error:
            problem = f"in round {rounds}: {error!r}"
        return {"longest_ms": talk.longest_ms, "rounds": rounds, "problem": problem}


def one_round(talk: Talk, number: int) -> None:
    """Raises OSError and AssertionError."""
    value = b"%d" % number
    talk.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(client_software_name="a", client_software_version="1"))
    about = talk.ask(ApiKey.METADATA, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))).topics[0]
    assert about.error_code == 0, about
    data = PartitionProduceData(index=0, records=batch([value]))
    topic = TopicProduceData(name=TOPIC, partition_data=(data,))
    answer = talk.ask(ApiKey.PRODUCE, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)))
    stored = answer.responses[0].partition_responses[0]
    assert stored.error_code == 0, stored
    wanted = FetchPartition(partition=0, fetch_offset=stored.base_offset, partition_max_bytes=10_000)
    read = talk.ask(
        ApiKey.FETCH,
        FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),)),
    )
    assert value in read.responses[0].partitions[0].records, read
    committed = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=stored.base_offset, committed_metadata=""
    )
    named = OffsetCommitRequestTopic(name=TOPIC, partitions=(committed,))
    done = talk.ask(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=TOPIC, member_id="", topics=(named,)))
    assert done.topics[0].partitions[0].error_code == 0, done


if __name__ == "__main__":
    sys.stdout.write(json.dumps(live((sys.argv[1], int(sys.argv[2])))))
