"""The control API: ``groupcoord.Cluster`` over HTTP, for tests in languages other than Python.

``groupcoord serve --control`` serves it (:mod:`groupcoord.control.serving`); :mod:`groupcoord.control.client` is a client in
Python. docs/control.md is its guide. Needs ``groupcoord[control]``.
"""
