import logging

import pytest

from groupcoord.cluster.assemble import Assembly
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import Heartbeat
from groupcoord.testing.faults.files import faults_from_text
from groupcoord.testing.faults.serving import ServedFaults
from tests.testing.faults.support import World, heartbeat

TEXT = """\
- {when: Heartbeat, do: refuse, code: NOT_COORDINATOR}
- {when: Heartbeat, member: m-9, do: drop}
- {when: JoinGroup, do: drop, optional: true}
"""


def test_the_log_says_which_rules_there_are_and_which_never_acted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    assembly = Assembly(world.node)
    served = ServedFaults(faults_from_text(TEXT, "dir/faults.yaml"), assembly, lambda: world.now)
    assert caplog.messages == [
        "faults.yaml rule 1: when(Heartbeat).refuse('NOT_COORDINATOR')",
        "faults.yaml rule 2: when(Heartbeat, member='m-9').drop()",
        "faults.yaml rule 3: when(JoinGroup).drop().optional()",
    ]
    call = Call(1, 2, Heartbeat, 4, "c", "/127.0.0.1")
    _, reply = assembly.served.handle(call, heartbeat(), world.now)
    assert isinstance(reply, Reply)
    assert reply.response.error_code == ErrorCode.NOT_COORDINATOR
    caplog.clear()
    served.tell_unused()
    assert caplog.messages == [
        "faults.yaml rule 2 never acted: when(Heartbeat, member='m-9').drop()",
        "  the nearest request:",
        f"    Heartbeat v4 from 'c' at 0 ms, broker 1: {heartbeat()!r}",
        "      member is 'm-1', not 'm-9'",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
