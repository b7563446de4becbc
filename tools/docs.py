"""Writes all generated files: parts of the documentation, and the types of the synchronous classes (sync_api.pyi).

``python -m tools.docs`` writes, with ``--check`` it only compares.

A generated part is between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a Markdown file.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path

from groupcoord.client.consumer_settings import LEFT_OUT, ConsumerSettings
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.config.broker_config import DEFAULTS, DEV_DEFAULTS
from groupcoord.config.property_definitions import BROKER, GROUP
from groupcoord.coordinator.classic.classic_group_state import COMMIT_ANSWERS, HEARTBEAT_ANSWERS, GroupState, may_move
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import ErrorCode
from tools import (
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
from tools.markdown import table
from tools.site import navigation
from tools.story import tell

ROOT = Path(__file__).resolve().parent.parent
FILES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
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
    return table("| API | what it is for | key | versions | a request names | the answer may wait |", rows)


def classic_states() -> str:
    """The states of a classic group, where each leads, and what members are told in it."""
    meanings = sync_api.attribute_docs(GroupState)
    rows = [
        f"| {state} | {meanings[state.name]} | {', '.join(to for to in GroupState if to is not state and may_move(state, to))} "
        f"| {_answer(HEARTBEAT_ANSWERS[state])} | {_answer(COMMIT_ANSWERS[state])} |"
        for state in GroupState
    ]
    return table("| state | what it is | leads to | answer to Heartbeat | answer to OffsetCommit |", rows)


def _answer(code: ErrorCode) -> str:
    return code.name if code else "no error"


def stand_in_defaults() -> str:
    """Where a stand-in has other defaults than Kafka."""
    rows = [f"| `{row.name}` | `{row.value}` | always | {row.reason} |" for row in DEFAULTS]
    rows += [f"| `{row.name}` | `{row.value}` | with `--dev` | {row.reason} |" for row in DEV_DEFAULTS]
    return table("| property | default here | when | why |", rows)


def consumer_group_properties() -> str:
    """The properties of consumer groups that something here acts on."""
    return _properties("group.consumer.", "group.coordinator.rebalance.protocols")


def transaction_properties() -> str:
    """The properties of transactions and of producer ids that something here acts on."""
    return _properties("transaction.", "transactional.", "producer.id.")


def client_settings() -> str:
    """The settings of a consumer, with defaults and meanings."""
    return _settings(ConsumerSettings)


def client_settings_left_out() -> str:
    """Settings that other clients have and this one refuses."""
    return table("| setting | why it is not there |", (f"| `{name}` | {why} |" for name, why in LEFT_OUT.items()))


def producer_settings() -> str:
    """The settings of a producer, Kafka's defaults, and what each means."""
    return _settings(ProducerConfig, delivery_timeout_ms=120_000, enable_idempotence=True)


def _settings(kind: type[ConsumerSettings | ProducerConfig], **unset: object) -> str:
    """The fields of ``kind``; ``unset`` are the defaults of those that None stands for."""
    meanings = sync_api.attribute_docs(kind)
    rows = [
        f"| `{each.name}` | {'' if each.default is MISSING else f'`{unset.get(each.name, each.default)}`'} "
        f"| {' '.join(meanings[each.name].replace('``', '`').split())} |"
        for each in fields(kind)
    ]
    return table("| setting | default | meaning |", rows)


def _properties(*prefixes: str) -> str:
    rows = [
        f"| `{name}` | `{row.default}` | {row.documentation} |"
        for name, row in sorted(BROKER.items())
        if row.documentation and name.startswith(prefixes)
    ]
    return table("| property | Kafka's default | meaning |", rows)


def consumer_group_configs() -> str:
    """What can be set for one consumer group."""
    rows = [
        f"| `{name}` | `{row.synonyms[0].name}` | {row.documentation} |"
        for name, row in sorted(GROUP.items())
        if name.startswith("consumer.")
    ]
    return table("| configuration | unless set | meaning |", rows)


def log_example() -> str:
    """What the log says of a small story, run through the coordinator."""
    return "```text\n" + "\n".join(tell()) + "\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "apis": apis,
    "classic-states": classic_states,
    "client-settings": client_settings,
    "client-settings-left-out": client_settings_left_out,
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
    written = {path: fresh(path.read_text(encoding="utf-8")) for path in FILES}
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
