"""Records how Kafka's log cleaner cleans aborted transactions: the lines of ``aborted`` in ``cleaned_by_kafka.jsonl``.

``python -m tests.broker.record_aborted_cleaned FOLDER`` starts a broker in FOLDER and writes FOLDER/aborted.jsonl; of a log of
the same kind that is never compacted, ``transactions-0``, the folder is kept as the broker left it when it ended.
"""

import base64
import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.offsets_log.lone_kafka import LoneKafka

COMPACTED, KEPT = "aborted", "transactions"
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}
CONFIGS = {
    "internal.segment.bytes": "1200",
    "index.interval.bytes": "300",
    "delete.retention.ms": "4000",
    "min.cleanable.dirty.ratio": "0",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
}


class Writers:
    """Producers ``A``, ``B`` and ``C`` with transactions, and ``P`` without."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        common = {"bootstrap.servers": servers, "log_level": 0, "linger.ms": 0}
        self._all = {
            name: Producer({**common, "transactional.id": f"{topic}-{name}", "transaction.timeout.ms": 600_000})
            for name in "ABC"
        }
        for producer in self._all.values():
            producer.init_transactions()
        self._all["P"] = Producer({**common, "enable.idempotence": False})

    def put(self, name: str, *keys: str, value: str | None = "x" * 60) -> None:
        """One batch with a record of each key."""
        for key in keys:
            self._all[name].produce(self._topic, key=key, value=value, partition=0)
        self._all[name].flush()

    def begin(self, name: str, *keys: str) -> None:
        """A transaction that begins with a batch."""
        self._all[name].begin_transaction()
        self.put(name, *keys)

    def commit(self, name: str) -> None:
        """It ends well."""
        self._all[name].commit_transaction()

    def abort(self, name: str) -> None:
        """It does not."""
        self._all[name].abort_transaction()


def first(to: Writers) -> None:
    """Aborted transactions beside and within others, across segments; one stays open."""
    to.put("P", "a", "b", "c")
    to.begin("A", "a", "x")
    to.begin("B", "b", "y")
    to.put("P", "d")
    to.put("A", "c")
    to.abort("A")
    to.put("B", "x")
    to.commit("B")
    to.begin("C", "e")
    to.begin("A", "f", "g")
    to.put("C", "g")
    to.abort("A")
    to.abort("C")
    to.begin("B", "h")
    for key in "klmn":
        to.put("P", key, "z")
    to.put("B", "h", "i")
    for key in "mnop":
        to.put("P", key, "z")
    to.abort("B")
    to.begin("A", "p")
    to.commit("A")
    to.begin("A")
    to.put("A", "p", value=None)
    to.commit("A")
    to.begin("C", "q")
    for key in "rstu":
        to.put("P", key, "z")
    to.begin("A", "a")
    to.abort("A")
    to.put("P", "s", "t", "u")
    to.put("P", "s", "t", "u")


def second(to: Writers) -> None:
    """The open one is aborted, and much is overwritten."""
    to.put("C", "r")
    to.abort("C")
    for key in "abcdefgh":
        to.put("P", key, "z")
    to.begin("B", "b")
    to.begin("C", "c")
    to.abort("B")
    to.commit("C")
    for key in "klmnopqrstu":
        to.put("P", key, "z")


def third(to: Writers) -> None:
    """Nothing but other values."""
    for key in "abcdefghxy":
        to.put("P", key, "z")
    to.begin("A", "v")
    to.abort("A")
    for key in "abcdef":
        to.put("P", key, "z")


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for the broker."""
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.1)


def lines(folder: Path, state: str) -> list[str]:
    """The segments of a log as they are."""
    found = []
    paths = sorted(folder.glob("*.log"))
    for path in paths:
        entry = {
            "state": state,
            "topic": COMPACTED,
            "base_offset": int(path.stem),
            "log": base64.b64encode(path.read_bytes()).decode(),
        }
        if path != paths[-1]:
            entry["index"] = path.with_suffix(".index").read_bytes().hex()
            entry["timeindex"] = path.with_suffix(".timeindex").read_bytes().hex()
        aborted = path.with_suffix(".txnindex")
        if aborted.exists():
            entry["txnindex"] = aborted.read_bytes().hex()
        found.append(json.dumps(entry))
    return found


def main(folder: Path) -> None:
    """Record into ``folder``."""
    said = []
    with LoneKafka(folder / "kafka", PROPERTIES) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, 1, 1, config=CONFIGS) for name in (COMPACTED, KEPT)]).values():
            made.result()

        def policy(value: str) -> None:
            entry = ConfigEntry("cleanup.policy", value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.TOPIC, COMPACTED, incremental_configs=[entry])
            for done in admin.incremental_alter_configs([resource]).values():
                done.result()

        def cleaned_to() -> int:
            path = kafka.data / "cleaner-offset-checkpoint"
            parts = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
            return next((int(part[2]) for part in parts if part[:2] == [COMPACTED, "0"]), -1)

        log = kafka.data / f"{COMPACTED}-0"
        writers, others = Writers(kafka.bootstrap_servers, COMPACTED), Writers(kafka.bootstrap_servers, KEPT)
        first(others)
        for run, write in enumerate((first, second, third), 1):
            write(writers)
            said += lines(log, f"before-{run}")
            before = cleaned_to()
            policy("compact")
            until(partial(lambda reached: cleaned_to() > reached, before), "nothing is cleaned")
            said += lines(log, f"after-{run}")
            policy("delete")
            time.sleep(5)  # delete.retention.ms
    (folder / "aborted.jsonl").write_text("".join(f"{line}\n" for line in said))
    shutil.copytree(kafka.data / f"{KEPT}-0", folder / f"{KEPT}-0")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
