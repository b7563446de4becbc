"""The playground: a cluster without sockets and threads, on a manual clock, which runs in a browser (Pyodide).

``playground.Playground`` runs actions by name and returns their results as JSON; ``lesson`` plays the lessons.
"""
