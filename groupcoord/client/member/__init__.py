"""A member of a group without I/O: events and the time go in, actions come out.

:class:`~groupcoord.client.member.membership.Membership` is the state machine of the classic protocol,
:class:`~groupcoord.client.member.consumer_membership.ConsumerMembership` that of the consumer protocol (KIP-848), and
:class:`~groupcoord.client.member.member_interface.GroupMember` what drivers see of both. ``groupcoord.client.member_driver``
carries their actions out.
"""
