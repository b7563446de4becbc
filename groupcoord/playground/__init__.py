"""A cluster to play with, where there are no sockets, no threads and no clock but that of the player, as in a browser.

``playground.Playground`` does what it is told by name and says what followed; ``lesson`` has the lessons.
"""
