"""From the log of ``__consumer_offsets`` to tables: what a cluster's consumer groups did, read with PySpark.

Sources give one schema (``sources/``), which is decoded (``decode/``), made into tables (``tables/``, functions from
DataFrame to DataFrame) and written (``output.py``); ``run.py`` is the whole job. Nothing here imports PySpark before it is
used, so that the command line can say what to install. Only protocol is imported from the rest of groupcoord.
"""
