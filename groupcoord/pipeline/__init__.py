"""The pipeline: PySpark jobs that turn the log of ``__consumer_offsets`` into tables and a report of what groups did.

``sources/`` read records as the table LOG, ``columnar_decoder.py`` decodes them, ``record_table_writer.py`` writes them,
``tables/`` (functions from DataFrame to DataFrame) derive the other tables, ``assignor_replay/`` replays groups with other
assignors, ``report/`` summarizes and renders; ``run.py`` is the batch job, ``watch/`` the streaming job.
This module does not import PySpark, so that the command line can say what to install.
"""
