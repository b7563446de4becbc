"""The report of a run: from its tables, a bounded amount of each, to one HTML page and one JSON document.

``arrow_table_reader`` answers questions about the tables, from which ``build_report`` makes a ``report_model.Report``;
``report_files`` writes that as JSON and HTML.
"""
