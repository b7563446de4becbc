"""The consumers of the demo: one small program for each client library, each run in a process of its own.

They are written as an application would be: read, work, commit; commit what is not committed yet when partitions are taken
away. They know nothing of groupcoord, and run against any broker.
"""
