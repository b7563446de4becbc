"""The sources of a run or a watch. Each of them reads records as the table ``schemas.LOG``."""
