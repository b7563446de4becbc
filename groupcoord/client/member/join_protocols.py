"""The protocols of a JoinGroup request: an encoded subscription for each assignor."""

from collections.abc import Mapping, Sequence

from groupcoord.assignors import Assignor, Subscription, TopicPartition, write_subscription
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol


def join_protocols(
    assignors: Mapping[str, Assignor],
    topics: Sequence[str],
    owned: Sequence[TopicPartition],
    generation_id: int,
    rack_id: str | None = None,
) -> tuple[JoinGroupRequestProtocol, ...]:
    """The protocols of a JoinGroup: each assignor's name, with the encoded subscription of a member that owns ``owned``."""
    return tuple(
        JoinGroupRequestProtocol(
            name=name,
            metadata=write_subscription(
                Subscription(
                    topics=topics,
                    user_data=assignor.subscription_user_data(topics),
                    owned_partitions=owned,
                    generation_id=generation_id,
                    rack_id=rack_id,
                )
            ),
        )
        for name, assignor in assignors.items()
    )
