"""The report of a run: from its tables, a bounded amount of each, to one HTML page and one JSON document.

``table_reader`` is the interface for reading tables, ``arrow_table_reader`` implements it, ``build_report`` reads through it
and makes a ``report_model.Report``; ``report_files`` writes that as JSON and HTML.
"""
