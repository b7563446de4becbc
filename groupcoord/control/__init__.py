"""Control over HTTP: what ``groupcoord.Cluster`` offers to a test in Python, for tests in every language.

``groupcoord serve --control`` serves it (:mod:`groupcoord.control.serving`), and :mod:`groupcoord.control.client` is a client.
docs/control.md shows it. Needs ``groupcoord[control]``.
"""
