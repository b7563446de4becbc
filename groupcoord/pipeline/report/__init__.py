"""The report of a run: a summary of bounded size of its tables, as a JSON document and an HTML page.

``arrow_table_reader`` queries the tables, ``build_report`` builds a ``report_model.Report`` from the results, and
``report_files`` writes it as JSON and HTML.
"""
