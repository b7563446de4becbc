"""From the log of ``__consumer_offsets`` to tables: what a cluster's consumer groups did, read with PySpark.

``sources/`` read records in one schema, ``decode/`` and ``record_tables.py`` decode them, ``tables/`` (functions from DataFrame
to DataFrame) derive the other tables, ``whatif/`` replays groups with other assignors, ``report/`` summarizes and renders;
``run.py`` is the whole job for one reading, ``watch/`` follows a live log. This module does not import PySpark, so that the
command line can say what to install.
"""
