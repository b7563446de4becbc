"""What can happen to members and brokers in a run."""

import enum


class ActionKind(enum.Enum):
    """What can happen to a member or to the brokers. The value is the text, with placeholders."""

    CRASH = "{member} crashes, and is started again {time} later"
    LEAVE = "{member} closes its consumer, and is started again {time} later"
    PAUSE = "{member} is suspended for {time}: it sends and reads nothing, no timer runs"
    BUSY = "{member} does not poll for {time}: heartbeats go on, callbacks wait"
    RESET = "the connections of {member} are reset, and it notices at once"
    LOSE_REQUESTS = "the connections of {member} break without its noticing; requests under way are lost"
    LOSE_ANSWERS = "the connections of {member} break without its noticing; responses under way are lost"
    SLOW = "messages of {member} take up to {amount} ms, for {time}"
    PARTITION = "{member} is cut off from all brokers for {time}; messages arrive late"
    BLACKOUT = "{member} is cut off from all brokers for {time}; messages are lost"
    TWIN = "another process starts with the instance id of {member}, for {time}"
    SUBSCRIBE = "{member} changes its subscription"
    REJOIN = "{member} asks for a rebalance"
    SWITCH = "{member} closes its consumer, and is started again {time} later with the other protocol"
    RELOAD = "the coordinator of {coordinated} resigns; {time} later it comes back and reads its log for {amount} ms"
    MOVE = "another broker becomes the coordinator of {coordinated}, and reads its log for {amount} ms"
    FAIL_APPEND = "the next append to {log} fails: {error}"
    HOLD_APPEND = "the next append to {log} takes {time}"
    LOSE_APPEND = "the next append to {log} takes {time}, and then fails: {error}"
    GROW = "the topic refunds gets another partition"
    DELETE = "the topic refunds is deleted, and created anew {time} later"
    RESTART = (
        "a broker restarts: its connections break, and its coordinators come back {time} later and read for {amount} ms"
    )
    MOVE_OUTPUT = "another broker becomes the leader of a partition of the topic invoices"
    KILL_BROKER = "broker {broker} is killed, and started again {time} later"
    STOP_BROKER = "broker {broker} shuts down in order, and is started again {time} later"
    LOSE_DISK = "broker {broker} is killed, if it runs, loses its disk, and is started again {time} later"
    PAUSE_BROKER = "broker {broker} is suspended for {time}: its connections stay open, and it says nothing"
    STOP_COPYING = "broker {broker} copies nothing from leaders for {time}"
    CUT_BROKERS = "broker {broker} and the one behind it hear nothing of each other for {time}"
    CUT_CONTROLLER = "broker {broker} and the controller hear nothing of each other for {time}"


BROKER_ACTIONS = frozenset(
    {
        ActionKind.RELOAD,
        ActionKind.MOVE,
        ActionKind.FAIL_APPEND,
        ActionKind.HOLD_APPEND,
        ActionKind.LOSE_APPEND,
        ActionKind.GROW,
        ActionKind.DELETE,
        ActionKind.RESTART,
        ActionKind.MOVE_OUTPUT,
    }
)
"""The actions that happen to the brokers, quickly. All others happen to a member, or to a broker that fails."""

FAILURES = frozenset(
    {
        ActionKind.KILL_BROKER,
        ActionKind.STOP_BROKER,
        ActionKind.LOSE_DISK,
        ActionKind.PAUSE_BROKER,
        ActionKind.STOP_COPYING,
        ActionKind.CUT_BROKERS,
        ActionKind.CUT_CONTROLLER,
    }
)
"""What happens to one of several brokers, whose id is the ``amount``."""

COORDINATOR_ACTIONS = frozenset(
    {
        ActionKind.RELOAD,
        ActionKind.MOVE,
        ActionKind.FAIL_APPEND,
        ActionKind.HOLD_APPEND,
        ActionKind.LOSE_APPEND,
    }
)
"""Those that happen to the coordinator of groups or, where there are any, of transactions."""

TRANSACTION_ACTIONS = frozenset({ActionKind.RESTART, ActionKind.MOVE_OUTPUT})
"""The actions of lives with transactions or producers only."""

TOPIC_ACTIONS = frozenset({ActionKind.GROW, ActionKind.DELETE})
"""The actions that need a topic that changes."""

GROUP_KINDS = tuple(kind for kind in ActionKind if kind not in TRANSACTION_ACTIONS | FAILURES)
"""What can happen to any group."""

CLASSIC_KINDS = tuple(kind for kind in GROUP_KINDS if kind is not ActionKind.SWITCH and kind not in TOPIC_ACTIONS)
"""What can happen to classic groups."""
