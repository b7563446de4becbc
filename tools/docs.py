"""Writes all generated files: parts of the documentation, and the types of the synchronous classes (sync_api.pyi).

``python -m tools.docs`` writes, with ``--check`` it only compares.

A generated part is between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a Markdown file.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path

from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.config.broker_config import DEFAULTS, DEV_DEFAULTS
from groupcoord.config.property_definitions import BROKER, GROUP
from groupcoord.coordinator.classic.classic_group_state import COMMIT_ANSWERS, HEARTBEAT_ANSWERS, GroupState, may_move
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import ErrorCode
from tools import (
    client,
    conformance,
    container,
    control,
    deviations,
    faults,
    glossary,
    pipeline,
    playground,
    replication,
    scenarios,
    simulation,
    sync_api,
    testing_api,
    trace,
)
from tools.site import navigation
from tools.story import tell

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    "README.md",
    "docs/README.md",
    "docs/apis.md",
    "docs/brokers.md",
    "docs/classic-groups.md",
    "docs/client.md",
    "docs/conformance.md",
    "docs/consumer-groups.md",
    "docs/control.md",
    "docs/container.md",
    "docs/deviations.md",
    "docs/configuration.md",
    "docs/faults.md",
    "docs/glossary.md",
    "docs/listeners.md",
    "docs/pipeline.md",
    "docs/playground.md",
    "docs/producer.md",
    "docs/scenarios.md",
    "docs/simulation.md",
    "docs/trace.md",
    "docs/testing-api.md",
    "docs/transactions.md",
)
_PART = re.compile(r"(?<=<!-- generated: )(?P<name>[a-z-]+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def apis() -> str:
    """Which APIs are served, at which versions, what each is for, and what its requests name."""
    named = {"groups": "group", "members": "member", "topics": "topic", "partitions": "partition"}
    named["transactional_ids"] = "transactional id"
    rows = [
        f"| {api.name} | {api.summary} | {api.key:d} | {api.min_version}–{api.max_version} "
        f"| {', '.join(word for field, word in named.items() if getattr(api, field))} | {'yes' if api.may_wait else ''} |"
        for api in APIS.values()
    ]
    head = [
        "| API | what it is for | key | versions | a request names | the answer may wait |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def classic_states() -> str:
    """The states of a classic group, where each leads, and what members are told in it."""
    meanings = sync_api.attribute_docs(GroupState)
    rows = [
        f"| {state} | {meanings[state.name]} | {', '.join(to for to in GroupState if to is not state and may_move(state, to))} "
        f"| {_answer(HEARTBEAT_ANSWERS[state])} | {_answer(COMMIT_ANSWERS[state])} |"
        for state in GroupState
    ]
    head = ["| state | what it is | leads to | answer to Heartbeat | answer to OffsetCommit |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _answer(code: ErrorCode) -> str:
    return code.name if code else "no error"


def stand_in_defaults() -> str:
    """Where a stand-in has other defaults than Kafka."""
    rows = [f"| `{row.name}` | `{row.value}` | always | {row.reason} |" for row in DEFAULTS]
    rows += [f"| `{row.name}` | `{row.value}` | with `--dev` | {row.reason} |" for row in DEV_DEFAULTS]
    return "\n".join(["| property | default here | when | why |", "|---|---|---|---|", *rows]) + "\n"


def consumer_group_properties() -> str:
    """The properties of consumer groups that something here acts on."""
    return _properties("group.consumer.", "group.coordinator.rebalance.protocols")


def transaction_properties() -> str:
    """The properties of transactions and of producer ids that something here acts on."""
    return _properties("transaction.", "transactional.", "producer.id.")


def producer_settings() -> str:
    """The settings of a producer, Kafka's defaults, and what each means."""
    meanings = sync_api.attribute_docs(ProducerConfig)
    unset = {"delivery_timeout_ms": 120_000, "enable_idempotence": True}
    rows = [
        f"| `{each.name}` | `{unset.get(each.name, each.default)}` | {meanings[each.name].replace('``', '`')} |"
        for each in fields(ProducerConfig)
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _properties(*prefixes: str) -> str:
    rows = [
        f"| `{name}` | `{row.default}` | {row.documentation} |"
        for name, row in sorted(BROKER.items())
        if row.documentation and name.startswith(prefixes)
    ]
    return "\n".join(["| property | Kafka's default | meaning |", "|---|---|---|", *rows]) + "\n"


def consumer_group_configs() -> str:
    """What can be set for one consumer group."""
    rows = [
        f"| `{name}` | `{row.synonyms[0].name}` | {row.documentation} |"
        for name, row in sorted(GROUP.items())
        if name.startswith("consumer.")
    ]
    return "\n".join(["| configuration | unless set | meaning |", "|---|---|---|", *rows]) + "\n"


def log_example() -> str:
    """What the log says of a small story, run through the coordinator."""
    return "```text\n" + "\n".join(tell()) + "\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "apis": apis,
    "classic-states": classic_states,
    "client-settings": client.settings,
    "client-settings-left-out": client.left_out,
    "consumer-group-configs": consumer_group_configs,
    "consumer-group-properties": consumer_group_properties,
    "conformance-apis": conformance.apis,
    "conformance-rules": conformance.rules,
    "conformance-summary": conformance.summary,
    "conformance-topics": conformance.topics,
    "contents": navigation.contents,
    "control-operations": control.operations,
    "container-compose": container.compose,
    "container-listeners": container.listeners,
    "container-variables": container.variables,
    "deviations": lambda: deviations.table(deviations.of_sources()),
    "fault-damage": faults.damage,
    "fault-fields": faults.fields,
    "fault-actions": faults.actions,
    "glossary": glossary.glossary,
    "log-example": log_example,
    "pipeline-causes": pipeline.causes,
    "pipeline-metrics": pipeline.metrics,
    "pipeline-symptoms": pipeline.symptoms,
    "pipeline-tables": pipeline.tables,
    "scenario-summary": lambda: scenarios.summary(scenarios.of_sources()),
    "scenario-tables": lambda: scenarios.tables(scenarios.of_sources()),
    "playground-actions": playground.action_table,
    "playground-lessons": playground.lesson_table,
    "producer-settings": producer_settings,
    "simulation-actions": simulation.actions,
    "simulation-defects": simulation.defects,
    "simulation-invariants": simulation.invariants,
    "stand-in-defaults": stand_in_defaults,
    "testing-data": testing_api.data,
    "testing-methods": testing_api.methods,
    "trace-causes": trace.causes,
    "replication-follower-falls-out": replication.follower_falls_out,
    "replication-leader-dies-acks-one": replication.leader_dies_acks_1,
    "replication-leader-dies-acks-all": replication.leader_dies_acks_all,
    "replication-unclean-election": replication.unclean_election,
    "trace-diagram": trace.diagram,
    "trace-events": trace.events,
    "trace-line": trace.line,
    "trace-text": trace.text,
    "trace-why": trace.why,
    "trace-why-got": trace.why_got,
    "trace-why-lost": trace.why_lost,
    "transaction-properties": transaction_properties,
    "trace-why-transaction": trace.why_transaction,
}


@cache
def _part(name: str) -> str:
    return PARTS[name]()


def fresh(text: str) -> str:
    """``text`` with every generated part written anew."""
    return _PART.sub(lambda part: f"{part['name']}{part[2]}{_part(part['name'])}", text)


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare; returns the exit code."""
    stale = []
    written = {ROOT / name: fresh((ROOT / name).read_text(encoding="utf-8")) for name in FILES}
    written[sync_api.PATH] = sync_api.stub_text()
    written[control.DESCRIPTION] = control.description()
    for path, after in written.items():
        if path.read_text(encoding="utf-8") != after:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
