"""Normalises transcripts: replaces the values that may differ between two servers that behave alike.

Each rule names the fields it touches and why their values cannot be compared as they are. Everything that no rule names is
compared exactly. A rule never hides a whole value where a part of it can be checked: the prefix of a member id stays, a
time becomes the step in which it was taken, an order that depends on random ids is checked against Java's hash order.
"""

import base64
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.protocol.apis import APIS

_LONGEST = 2**63 - 1
# Not a rule, only shorter to read: long runs of one character are counted.
_RUN = re.compile(r"(.)\1{199,}", re.DOTALL)
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_KAFKA_ID = re.compile(r"[0-9A-Za-z_-]{22}")
_NO_PREFIX = re.compile(r"[\s/'\"(]")


def kafka_text(some_id: uuid.UUID | str) -> str:
    """An id as Kafka's texts have it."""
    return base64.urlsafe_b64encode(uuid.UUID(str(some_id)).bytes).rstrip(b"=").decode()


@dataclass
class Names:
    """What one story has seen so far of ids and times, and the names that stand for them in its transcript."""

    story: str = ""
    stories: frozenset[str] = frozenset()
    endpoints: set[tuple[str, int]] = field(default_factory=set)
    step_starts_ms: list[int] = field(default_factory=list)
    _random: dict[str, str] = field(default_factory=dict)
    _per_prefix: dict[str, int] = field(default_factory=dict)
    _topics: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, dict[int, str]] = field(default_factory=dict)
    _kafka_ids: dict[str, str] = field(default_factory=dict)
    _members_made: int = 0

    def without_random(self, text: str) -> str:
        """``text`` with each random UUID replaced by which one it is among those with its prefix."""

        for random, name in self._kafka_ids.items():
            text = text.replace(random, name)
        shown, end = "", 0
        for found in _RANDOM.finditer(text):
            random, before = found.group(), text[end : found.start()]
            if random in self._topics:
                shown += f"{before}<id of topic {self._topics[random]}>"
            else:
                prefix = _NO_PREFIX.split(before)[-1].removesuffix("-")
                if random not in self._random:
                    self._per_prefix[prefix] = self._per_prefix.get(prefix, 0) + 1
                    self._random[random] = f"<uuid {self._per_prefix[prefix]}>"
                shown += before + self._random[random]
            end = found.end()
        return shown + text[end:]

    def without_times(self, text: str) -> str:
        """``text`` without numbers that are times within a day of this story."""
        start = self.step_starts_ms[0] if self.step_starts_ms else 0

        def name(found: re.Match[str]) -> str:
            for offset, what in ((0, "<a time near now>"), (_LONGEST, "<now - Long.MAX_VALUE>")):
                if abs(int(found.group()) + offset - start) < 86_400_000:
                    return what
            return found.group()

        return re.sub(r"-\d{19}|\d{13}", name, text)

    def learn_topic(self, topic_id: uuid.UUID | str, name: str) -> None:
        """From now on ``topic_id`` is called after ``name``; a topic made anew under its old name gets a number."""
        known = self._topics
        if str(topic_id) not in known:
            others = sum(1 for other in known.values() if other.partition(" #")[0] == name)
            known[str(topic_id)] = name if not others else f"{name} #{others + 1}"
            self._kafka_ids[kafka_text(topic_id)] = f"<id of topic {known[str(topic_id)]}>"

    def member(self, member_id: str) -> str:
        """``member_id`` without what is random in it."""
        if _KAFKA_ID.fullmatch(member_id) and member_id not in self._kafka_ids:
            self._members_made += 1
            self._kafka_ids[member_id] = f"<member id {self._members_made}>"
        return self.without_random(member_id)

    def topic(self, topic_id: str | None) -> str | None:
        """The name that stands for ``topic_id``; ids the story made up itself stay."""
        return f"<id of topic {self._topics[topic_id]}>" if topic_id in self._topics else topic_id

    def number(self, kind: str, value: int) -> str:
        """``<kind 1>`` for the first value seen of a kind, and so on."""
        known = self._numbers.setdefault(kind, {})
        return known.setdefault(value, f"<{kind} {len(known) + 1}>")

    def time(self, at_ms: int) -> int | str:
        """The step during which ``at_ms`` was; a time outside of the story stays as it is."""
        starts = self.step_starts_ms
        if not starts or not starts[0] <= at_ms <= starts[-1] + 3_600_000:
            return at_ms
        return f"<time of step {sum(1 for start in starts if start <= at_ms)}>"

    def own(self, name: str) -> bool:
        """Is the group ``name`` this story's? Stories put their name in front; the group without a name is whose turn it is."""
        return name.partition("-")[0] in {self.story, ""}

    def not_anothers(self, name: str | None) -> bool:
        """Is the topic ``name`` no other story's? The broker has some of its own, of which the first story with a transaction
        makes one."""
        if name == "__transaction_state":
            return False
        owner = (name or "").partition("-")[0]
        return owner == self.story or owner not in self.stories


class Rule(NamedTuple):
    """``apply(value, names)`` is what stands for the value of a field called one of ``fields``, which may be whole paths."""

    fields: tuple[str, ...]
    reason: str
    apply: Callable[[Any, Names], Any]


VALUES = (
    Rule(
        ("topic_id",),
        "Topic ids are random UUIDs, and are replaced by the topic's name.",
        lambda value, names: names.topic(value),
    ),
    Rule(
        ("host",),
        "The address of the tested server differs; the empty host of an error is compared.",
        lambda value, names: "<host>" if value in {host for host, _ in names.endpoints} else value,
    ),
    Rule(
        ("port",),
        "The port of the tested server differs; the -1 of an error is compared.",
        lambda value, names: "<port>" if value in {port for _, port in names.endpoints} else value,
    ),
    Rule(
        ("client_host",),
        "A broker in a container sees the bridge's address; the leading slash of Java's InetAddress is compared.",
        lambda value, names: re.sub(r"\d+(\.\d+){3}", "<address>", value),
    ),
    Rule(
        ("cluster_id",),
        "The cluster id is generated when the storage is formatted.",
        lambda value, names: None if value is None else "<cluster id>",
    ),
    Rule(
        (
            "timestamp",
            "log_append_time_ms",
            "base_timestamp",
            "max_timestamp",
            "commit_timestamp",
            "current_state_timestamp",
            "assignment_timestamp",
            "transaction_start_time_ms",
            "last_timestamp",
            "last_fetch_timestamp",
            "last_caught_up_timestamp",
        ),
        "Times of the run are replaced by the step in which they fall; times that a story sends are compared.",
        lambda value, names: names.time(value),
    ),
    Rule(
        ("producer_id", "producer_id_filters", "v3_and_below_producer_id"),
        "Producer ids come from a counter shared by all clients of the broker.",
        lambda value, names: value if value < 0 or value >= 1 << 40 else names.number("producer id", value),
    ),
    Rule(
        ("session_id",),
        "Fetch session ids are random.",
        lambda value, names: value if value in {0, -1, 1, 77} else names.number("fetch session", value),
    ),
    Rule(
        ("metadata_hash",),
        "It is computed from random topic ids; only whether it has changed is compared.",
        lambda value, names: value and names.number("metadata hash", value),
    ),
    Rule(
        (
            "metadata_version",
            "DescribeQuorum/topics/partitions/high_watermark",
            "DescribeQuorum/topics/partitions/current_voters/log_end_offset",
        ),
        "The offset of the metadata log, which grows without requests; the 0 of an error is compared.",
        lambda value, _: value and "<an offset of the metadata log>",
    ),
    Rule(
        ("DescribeQuorum/nodes/listeners/host", "DescribeQuorum/nodes/listeners/port"),
        "The address of the controller differs.",
        lambda _value, _: "<of the controller>",
    ),
    Rule(
        ("log_dir",),
        "The configured directory; only that its path is absolute is compared.",
        lambda value, _: "<an absolute path>" if value.startswith("/") else value,
    ),
    Rule(
        ("total_bytes", "usable_bytes"),
        "The size of the volume; -1 if it is unknown, as for logs in memory.",
        lambda value, _: "<bytes, or -1>" if value >= -1 else value,
    ),
    Rule(
        ("member_id",),
        "Member ids that the coordinator generates for consumer groups are random.",
        lambda value, names: value if value is None else _with_runs_counted(names.member(value)),
    ),
)
TEXTS = (
    Rule(
        ("error_message", "batch_index_error_message"),
        "Some messages contain a limit that is computed from the current time.",
        lambda value, names: None if value is None else names.without_times(names.without_random(value)),
    ),
    Rule(
        ("documentation",),
        "Kafka's texts are not copied; only whether there is a text is compared.",
        lambda value, names: "<some text>" if value else value,
    ),
    Rule(
        ("finalized_features_epoch",),
        "The offset of the metadata log, which grows without requests.",
        lambda value, names: value if value < 0 else "<an offset of the metadata log>",
    ),
)
_BY_FIELD = {name: rule for rule in (*VALUES, *TEXTS) for name in rule.fields}


class Order(NamedTuple):
    """How a list is brought into an order that can be compared, and which of its items are; ``when`` says if it is at all."""

    path: str
    reason: str
    keep: Callable[[Any, Names], bool]
    key: Callable[[Any], Any]
    check: Callable[[list[Any]], str | None]
    when: Callable[[list[Any]], bool] = lambda _: True


def hash_bucket(member_id: str) -> int:
    """Where Java's HashMap puts ``member_id`` while it has at most twelve entries."""
    value = 0
    for unit in member_id:
        value = (31 * value + ord(unit)) & 0xFFFFFFFF
    return (value ^ value >> 16) & 15


def in_hash_order(member_ids: Iterable[str]) -> bool:
    """Are ``member_ids`` in the iteration order of a small java.util.HashMap?"""
    buckets = [hash_bucket(member_id) for member_id in member_ids]
    return buckets == sorted(buckets)


def _hash_order(members: list[Any]) -> str | None:
    return None if in_hash_order(item["member_id"] for item in members) else "members are not in Java's hash order"


def is_random(member_id: str) -> bool:
    """Did a coordinator make this id?"""
    return bool(_RANDOM.search(member_id) or _KAFKA_ID.fullmatch(member_id))


def _unchecked(_: list[Any]) -> str | None:
    return None


def _everything(_: Any, __: Names) -> bool:
    return True


_MEMBERS = (
    "Members are in the hash order of their random ids: this order is checked, then they are sorted.",
    _everything,
    lambda item: item["member_id"],
    _hash_order,
)
_ASSIGNED = (
    "Topics are in the order of hash maps, or of immutable maps, whose keys are random topic ids.",
    _everything,
    lambda item: str(item["topic_id"]),
    _unchecked,
)
_SERVED = frozenset(APIS)
_PRODUCED = "Produce collects its results in a hash map whose keys contain random topic ids."
ORDERS = (
    Order(
        "Produce/responses",
        _PRODUCED,
        _everything,
        lambda item: str(item.get("name") or item.get("topic_id")),
        _unchecked,
    ),
    Order("Produce/responses/partition_responses", _PRODUCED, _everything, lambda item: item["index"], _unchecked),
    Order("JoinGroup/members", *_MEMBERS),
    Order("DescribeGroups/groups/members", *_MEMBERS),
    Order("__consumer_offsets/value/members", *_MEMBERS),
    Order("ConsumerGroupHeartbeat/assignment/topic_partitions", *_ASSIGNED),
    Order(
        "ConsumerGroupDescribe/groups/members",
        "Members are in the order of a hash table; if all ids are given by the story, this order is compared.",
        _everything,
        lambda item: item["member_id"],
        _unchecked,
        lambda items: any(is_random(item["member_id"]) for item in items),
    ),
    Order("ConsumerGroupDescribe/groups/members/assignment/topic_partitions", *_ASSIGNED),
    Order("ConsumerGroupDescribe/groups/members/target_assignment/topic_partitions", *_ASSIGNED),
    Order("__consumer_offsets/value/topic_partitions", *_ASSIGNED),
    Order("__consumer_offsets/value/assigned_partitions", *_ASSIGNED),
    Order("__consumer_offsets/value/partitions_pending_revocation", *_ASSIGNED),
    Order(
        "ListGroups/groups",
        "The server also has groups of other stories, and the order is that of Java's hash maps of all groups.",
        lambda item, names: names.own(item["group_id"]),
        lambda item: item["group_id"],
        _unchecked,
    ),
    Order(
        "ListTransactions/transaction_states",
        "The server also has producers of other stories, and the order is that of Java's hash maps of all of them.",
        lambda item, names: names.own(item["transactional_id"]),
        lambda item: item["transactional_id"],
        _unchecked,
    ),
    Order(
        "DescribeProducers/topics/partitions/active_producers",
        "Producers are in the order of a hash map of their ids.",
        _everything,
        lambda item: (len(str(item["producer_id"])), str(item["producer_id"])),
        _unchecked,
    ),
    Order(
        "Metadata/topics",
        "The server also has topics of other stories.",
        lambda item, names: names.not_anothers(item["name"]),
        lambda item: 0,
        _unchecked,
    ),
    Order(
        "ListConfigResources/config_resources",
        "The server also has topics, groups and subscriptions of other stories.",
        lambda item, names: names.not_anothers(item["resource_name"]),
        lambda item: 0,
        _unchecked,
    ),
    Order(
        "ApiVersions/api_keys",
        "Kafka has more APIs than groupcoord; those that both serve are compared, including their versions.",
        lambda item, names: item["api_key"] in _SERVED,
        lambda item: item["api_key"],
        _unchecked,
    ),
    Order(
        "ApiVersions/finalized_features",
        "Features are in the order of an immutable map, which differs from run to run.",
        _everything,
        lambda item: item["name"],
        _unchecked,
    ),
    Order(
        "DescribeLogDirs/results/topics",
        "The server also has topics of other stories, and the order is that of a hash map.",
        lambda item, names: names.own(item["name"]),
        lambda item: item["name"],
        _unchecked,
    ),
    Order(
        "DescribeLogDirs/results/topics/partitions",
        "Logs are in the order of a concurrent hash map.",
        _everything,
        lambda item: item["partition_index"],
        _unchecked,
    ),
    Order(
        "DeleteTopics/responses",
        "Kafka shuffles this list (ControllerApis), so that the order tells an unauthorised client nothing.",
        _everything,
        lambda item: (str(item["name"]), item["error_code"], str(item.get("topic_id"))),
        _unchecked,
    ),
)
_BY_PATH = {order.path: order for order in ORDERS}


def _with_runs_counted(text: str) -> str:
    return _RUN.sub(lambda run: f"<{len(run.group())} times {run.group(1)}>", text)


def normalised(value: Any, names: Names, path: str) -> Any:
    """``value``, found at ``path`` (``JoinGroup/members``), with the rules applied."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and isinstance(value.get("topic_id"), str):
            names.learn_topic(value["topic_id"], value["name"])
        exact = {"producer_id"} if value.get("transaction_state") == "" else set()  # the 0 of an error is nobody's id
        shown = {
            name: item if name in exact else _field(item, name, names, f"{path}/{name}") for name, item in value.items()
        }
        if "expire_timestamp" in shown:
            # The one time that lies ahead: it is compared as a distance from the commit.
            shown["expire_timestamp"] = f"<commit + {value['expire_timestamp'] - value['commit_timestamp']} ms>"
        return shown
    if isinstance(value, list):
        return [normalised(item, names, path) for item in value]
    if isinstance(value, str):
        return _with_runs_counted(names.without_random(value))
    return value


def _field(value: Any, name: str, names: Names, path: str) -> Any:
    name = path if path in _BY_FIELD else name
    if name in _BY_FIELD and not isinstance(value, list | dict):
        return _BY_FIELD[name].apply(value, names)
    if name in _BY_FIELD and isinstance(value, list) and all(isinstance(item, int) for item in value):
        return [_BY_FIELD[name].apply(item, names) for item in value]
    order = _BY_PATH.get(path)
    if order is None or not isinstance(value, list) or not order.when(value):
        return normalised(value, names, path)
    kept = [item for item in value if order.keep(item, names)]
    problem = order.check(kept)
    shown = sorted((normalised(item, names, path) for item in kept), key=order.key)
    return shown if problem is None else [*shown, {"oddities": [problem]}]
