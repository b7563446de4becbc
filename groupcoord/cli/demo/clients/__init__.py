"""The client programs of ``groupcoord demo``, one for each client library, each run in a process of its own.

They are written like applications: read, process, commit; and commit before partitions are revoked. They do not use groupcoord
and run against any broker.
"""
