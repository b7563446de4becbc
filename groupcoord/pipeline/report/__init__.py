"""The report of a run: from its tables, a bounded amount of each, to one HTML page and one JSON document.

``reading`` says what can be asked of tables (``arrow_reader`` and ``spark_reader`` answer), ``build`` asks it and makes a
``model.Report``, and ``page`` and ``machine`` write that down. Only the readers need more than Python.
"""
