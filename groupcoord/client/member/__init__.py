"""A member of a group without I/O: events and the time go in, actions come out.

:class:`~groupcoord.client.member.membership.Membership` is the state machine; ``groupcoord.client.member_driver`` carries its
actions out.
"""
