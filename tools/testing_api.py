"""Generates docs/testing-api.md: every class of the test harness with its methods, properties and fields."""

import inspect
import re
from dataclasses import fields, is_dataclass

from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.producer.sent_records import RecordMetadata
from groupcoord.testing.append_rules import HeldAppends
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.broker_and_controller_handles import ClusterBroker, ControllerHandle
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.cluster_clock import ClusterClock
from groupcoord.testing.cluster_group import ClusterGroup
from groupcoord.testing.faults import AsyncRule, Barrier, Faults, HoldRule
from groupcoord.testing.group_handle import GroupDescription, MemberDescription
from groupcoord.testing.manual_classic_member import ManualMember
from groupcoord.testing.manual_consumer_member import ManualConsumer
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.record_writing import ProducerRecord
from groupcoord.testing.remote_cluster import RemoteCluster, RemoteGroup
from groupcoord.testing.topic_settings import Topic
from groupcoord.testing.trace import Trace
from groupcoord.testing.transaction_handle import ClusterTransaction, RemoteTransaction, TransactionDescription
from tools.sync_api import ORIGINALS, attribute_docs

_CLASSES: dict[str, tuple[type, type | None]] = {
    "The cluster: `kafka`": (Cluster, RemoteCluster),
    "A group: `kafka.group(name)`": (ClusterGroup, RemoteGroup),
    "A transactional id: `kafka.transaction(name)`": (ClusterTransaction, RemoteTransaction),
    "A broker of several: `kafka.broker(id)`": (ClusterBroker, None),
    "Their controller: `kafka.controller`": (ControllerHandle, None),
    "The time: `kafka.clock`": (ClusterClock, None),
    "Faults: `kafka.faults`": (Faults, None),
    "A rule: `kafka.faults.when(…)` with what it does": (AsyncRule, None),
    "A rule that holds requests: `kafka.faults.when(…).hold()`": (HoldRule, None),
    "A barrier, which releases requests in a chosen order: `kafka.barrier(…)`": (Barrier, None),
    "Appends that wait: `kafka.hold_append(…)`": (HeldAppends, None),
    "The trace: `kafka.trace`": (Trace, None),
    "A member that acts by itself: `kafka.consumers(…)`": (AutoMember, AutoMember),
    "A manual member: `kafka.manual_member(…)`": (ManualMember, ManualMember),
    "A manual member of a consumer group: `kafka.manual_consumer(…)`": (ManualConsumer, ManualConsumer),
    "A manual transactional producer: `kafka.manual_producer(…)`": (ManualProducer, ManualProducer),
}
"""What of it is in this process, and what elsewhere."""
_DATA = (
    *(Topic, ProducerRecord, RecordMetadata, ConsumerRecord),
    *(GroupDescription, MemberDescription, TransactionDescription),
)


_PROXIES: dict[type | None, type] = {original: proxy for proxy, original in ORIGINALS.items()}
_NOT_FOR_TESTS = {
    *("add", "add_as", "add_layer", "add_named", "layer", "log_unused", "insert", "sync"),
    *("after", "lines", "on_entry"),
    *("cancel", "hold", "is_used_up", "on_change", "record_match", "record_near_miss", "record_use", "unmatch"),
    *("near_misses", "why_unused"),
}
"""What Faults, its rules and Trace offer to the rest of the harness."""


def methods() -> str:
    """A table for each class."""
    return "\n".join(_table(title, here, elsewhere) for title, (here, elsewhere) in _CLASSES.items())


def data() -> str:
    """The classes of what is given and told, with their fields."""
    return "".join(f"- `{each.__name__}({', '.join(_fields(each))})`: {_first_paragraph(each)}\n" for each in _DATA)


def _table(title: str, here: type, elsewhere: type | None) -> str:
    rows: list[tuple[str, ...]] = [("method or property", "what it is or does"), ("---", "---")]
    rows += [_row(here, name) for name in _names(here)]
    if elsewhere not in (None, here):
        there = _names(elsewhere)
        remote = ["`RemoteCluster`", "---", *("yes" if name in there else "" for name in _names(here))]
        rows = [(*row, told) for row, told in zip(rows, remote, strict=True)]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _names(found: type | None) -> list[str]:
    """What of a class a test may use, what is more general first; the synchronous classes leave out the rest."""
    classes = [] if found is None else list(reversed(found.__mro__))
    names = dict.fromkeys(name for each in classes for name in (*inspect.get_annotations(each), *vars(each)))
    proxy = _PROXIES.get(found, found)
    return [name for name in names if name[0] != "_" and name not in _NOT_FOR_TESTS and hasattr(proxy, name)]


def _row(found: type, name: str) -> tuple[str, str]:
    member = inspect.getattr_static(found, name, None)
    function = member.__func__ if isinstance(member, classmethod) else member
    if isinstance(member, property):
        return f"`{name}`", _first_paragraph(member)
    if not inspect.isfunction(function):
        (declared,) = (each for each in found.__mro__ if name in inspect.get_annotations(each))
        return f"`{name}`", _one_line(attribute_docs(declared)[name])
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in list(signature.parameters.values())[1:]]
    awaits = inspect.iscoroutinefunction(inspect.unwrap(function)) or "Future" in str(signature.return_annotation)
    call = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(inspect.Signature(parameters)))
    return f"`{'await ' if awaits else ''}{name}{call}`", _first_paragraph(function)


def _fields(found: type) -> list[str]:
    return [each.name for each in fields(found)] if is_dataclass(found) else list(found._fields)  # type: ignore[attr-defined]


def _first_paragraph(found: object) -> str:
    return _one_line((inspect.getdoc(found) or "").partition("\n\n")[0])


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("``", "`").replace("|", r"\|")
