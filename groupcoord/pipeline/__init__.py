"""From the log of ``__consumer_offsets`` to tables: what a cluster's consumer groups did, read with PySpark.

``sources/`` read records in one schema, ``columnar_decoder.py`` decodes them, ``record_table_writer.py`` writes them,
``tables/`` (functions from DataFrame to DataFrame) derive the other tables, ``assignor_replay/`` replays groups with other
assignors, ``report/`` summarizes and renders; ``run.py`` is the whole job for one reading, ``watch/`` follows a live log.
This module does not import PySpark, so that the command line can say what to install.
"""
