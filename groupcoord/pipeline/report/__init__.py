"""The report of a run: from its tables, a bounded amount of each, to one HTML page and one JSON document.

``table_reader`` is the interface for reading tables, ``arrow_table_reader`` implements it, ``build_report`` reads through it
and makes a ``report_model.Report``; ``page`` and ``json_document`` write that down. Only the reader needs more than Python.
"""
