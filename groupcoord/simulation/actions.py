"""ActionKind: the faults and operations that a simulation plan applies to members and brokers."""

import enum


class ActionKind(enum.Enum):
    """A fault or operation. The value is its description, with placeholders."""

    CRASH = "{member} crashes, and is started again {time} later"
    LEAVE = "{member} closes its consumer, and is started again {time} later"
    PAUSE = "{member} is suspended for {time}: it sends and reads nothing, and no timer runs"
    BUSY = "{member} does not poll for {time}: heartbeats continue, callbacks wait"
    RESET = "the connections of {member} are reset, and it notices at once"
    LOSE_REQUESTS = "the connections of {member} break without its noticing; requests in flight are lost"
    LOSE_ANSWERS = "the connections of {member} break without its noticing; responses in flight are lost"
    SLOW = "messages from and to {member} take up to {amount} ms, for {time}"
    PARTITION = "{member} is cut off from all brokers for {time}; messages arrive late"
    BLACKOUT = "{member} is cut off from all brokers for {time}; messages are lost"
    TWIN = "another process starts with the instance id of {member}, for {time}"
    SUBSCRIBE = "{member} changes its subscription"
    REJOIN = "{member} requests a rebalance"
    SWITCH = "{member} closes its consumer, and is started again {time} later with the other protocol"
    RELOAD = "the coordinator of {coordinated} resigns; {time} later it starts again and loads its log for {amount} ms"
    MOVE = "another broker becomes the coordinator of {coordinated}, and loads its log for {amount} ms"
    FAIL_APPEND = "the next append to {log} fails: {error}"
    HOLD_APPEND = "the next append to {log} takes {time}"
    LOSE_APPEND = "the next append to {log} takes {time}, and then fails: {error}"
    GROW = "the topic refunds gets another partition"
    DELETE = "the topic refunds is deleted, and created again {time} later"
    RESTART = (
        "a broker restarts: its connections break, and its coordinators start {time} later and load for {amount} ms"
    )
    MOVE_OUTPUT = "another broker becomes the leader of a partition of the topic invoices"
    KILL_BROKER = "broker {broker} is killed, and started again {time} later"
    STOP_BROKER = "broker {broker} is shut down cleanly, and is started again {time} later"
    LOSE_DISK = "broker {broker} is killed, if it runs, loses its disk, and is started again {time} later"
    PAUSE_BROKER = "broker {broker} is suspended for {time}: its connections stay open, and it sends nothing"
    PAUSE_REPLICATION = "broker {broker} does not replicate from leaders for {time}"
    CUT_BROKERS = "the network between broker {broker} and the next broker is cut for {time}"
    CUT_CONTROLLER = "the network between broker {broker} and the controller is cut for {time}"


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
"""The actions on the brokers that are over quickly. All others act on a member, or let a broker fail."""

FAILURES = frozenset(
    {
        ActionKind.KILL_BROKER,
        ActionKind.STOP_BROKER,
        ActionKind.LOSE_DISK,
        ActionKind.PAUSE_BROKER,
        ActionKind.PAUSE_REPLICATION,
        ActionKind.CUT_BROKERS,
        ActionKind.CUT_CONTROLLER,
    }
)
"""The failures of one broker of several; ``amount`` is its id."""

COORDINATOR_ACTIONS = frozenset(
    {
        ActionKind.RELOAD,
        ActionKind.MOVE,
        ActionKind.FAIL_APPEND,
        ActionKind.HOLD_APPEND,
        ActionKind.LOSE_APPEND,
    }
)
"""The actions on the group coordinator or, in runs with transactions, on the transaction coordinator."""

TRANSACTION_ACTIONS = frozenset({ActionKind.RESTART, ActionKind.MOVE_OUTPUT})
"""The actions that happen only in runs with transactions or producers."""

TOPIC_ACTIONS = frozenset({ActionKind.GROW, ActionKind.DELETE})
"""The actions that need the topic ``CHANGING_TOPIC``."""

GROUP_KINDS = tuple(kind for kind in ActionKind if kind not in TRANSACTION_ACTIONS | FAILURES)
"""The actions that are possible in any group."""

CLASSIC_KINDS = tuple(kind for kind in GROUP_KINDS if kind is not ActionKind.SWITCH and kind not in TOPIC_ACTIONS)
"""The actions that are possible in classic groups."""
