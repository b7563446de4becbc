"""The words of the protocol, each explained where it comes up first."""

WORDS = {
    "partition": "a part of a topic. Records with the same key go to the same one, and keep their order there; "
    "the place of a record in its partition is its offset.",
    "group": "consumers that share the work of a topic. Each partition is read by exactly one of them.",
    "JoinGroup": "the request to be a member of a group.",
    "coordinator": "the broker that keeps the group together: here groupcoord.",
    "member id": "what the coordinator knows members by. This is the whole id; from here on, names will do.",
    "protocol": "a way to share out partitions, also called an assignor. A group must agree on one.",
    "rebalance": "all members join again and the partitions are shared out anew. Until that is done the group is "
    "PreparingRebalance (who is there?), then CompletingRebalance (who gets what?).",
    "generation": "what comes of a rebalance. Requests of an older one are refused: whoever missed a rebalance can do no harm.",
    "vote": "each member votes for the first protocol on its list that all members know.",
    "leader": "the member that shares out the partitions. The coordinator just passes its decision on.",
    "SyncGroup": "the request that brings the leader's assignment. The others send it too, and are answered with their part.",
    "Stable": "everybody knows what to read, and reads.",
    "→": "in the table below, this marks a partition that has another owner than before.",
    "commit": "to store how far one has come: the offset of the next record to read. Whoever owns the partition later "
    "goes on there.",
    "heartbeat": "the request that says “I am alive”. The answer is how members learn of a rebalance.",
    "LeaveGroup": "the request of a client that is closed; nobody has to wait for its session to run out.",
    "session": "so long a member may be silent before it counts as dead. Each member chooses its own.",
    "at least once": "what was read but not committed is read again by the next owner. So no record is lost, and some come "
    "twice.",
    "__consumer_offsets": "the topic in which the coordinator stores every generation and every commit, to have them again "
    "after a restart. Clients can read it too.",
    "compaction": "throwing away each record that has a later one with the same key. The others keep their offsets.",
}


class Glossary:
    """Explains each word once."""

    def __init__(self) -> None:
        self._explained: set[str] = set()

    def explain(self, *words: str) -> list[tuple[str, str]]:
        """Those of ``words`` that are new, with what they mean."""
        new = [word for word in words if word not in self._explained]
        self._explained.update(new)
        return [(word, WORDS[word]) for word in new]
