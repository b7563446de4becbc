"""An example of one's own: rendezvous hashing, also called highest random weight.

Every member draws a number for every partition, by hashing both names with MurmurHash3, and the highest number wins. Who
leaves gives up only what it had, who joins takes only what it wins, and no member has to say what it had. The price is that
the load is even only on average; ``remark`` says how even it came out.
"""

import mmh3

from groupcoord.assignors.cooperative import in_two_steps
from groupcoord.assignors.interface import Assignor
from groupcoord.assignors.java_order import members_in_hash_order, partitions_of, subscribers_of, topic_table
from groupcoord.assignors.measure import spread
from groupcoord.assignors.model import Assignment, Group, RebalanceProtocol


class Rendezvous(Assignor):
    """Each partition goes to the subscriber that draws the highest number for it.

    A static member draws by its instance id, so that it finds its partitions again after a restart; a dynamic one, whose id
    is new each time, does not.
    """

    name = "rendezvous"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def assign(self, group: Group) -> Assignment:
        """Who wins what; what a living member still owns is withheld for one rebalance."""
        members = members_in_hash_order(group)
        table = topic_table(members, group.partitions)
        seeds = {
            member_id: mmh3.hash(subscription.instance_id or member_id, signed=False)
            for member_id, subscription in members.items()
        }
        assignment: Assignment = {member_id: [] for member_id in members}
        for topic, subscribers in subscribers_of(table, members).items():
            for partition in partitions_of(topic, table[topic]):
                draw = f"{topic}-{partition[1]}".encode()
                winner = max(
                    subscribers,
                    key=lambda member_id: (mmh3.hash64(draw, seeds[member_id], signed=False)[0], member_id),
                )
                assignment[winner].append(partition)
        return in_two_steps(members, assignment)

    def remark(self, assignment: Assignment) -> str:
        """How far ``assignment`` is from balanced."""
        sizes = [len(partitions) for partitions in assignment.values()]
        mean = sum(sizes) / max(1, len(sizes))
        over = max(sizes, default=0) / mean - 1 if mean else 0.0
        return f"members differ by up to {spread(assignment)}; the fullest has {over:.0%} more than an even share"
