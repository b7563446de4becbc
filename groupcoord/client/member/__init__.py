"""A member of a consumer group as a state machine without I/O: events and the time go in, actions come out.

:class:`~groupcoord.client.member.classic_membership.Membership` is the state machine of the classic protocol,
:class:`~groupcoord.client.member.consumer_membership.ConsumerMembership` that of the consumer protocol (KIP-848), and
:class:`~groupcoord.client.member.group_member.GroupMember` the interface of both. ``groupcoord.client.member_driver``
carries their actions out on asyncio.
"""
