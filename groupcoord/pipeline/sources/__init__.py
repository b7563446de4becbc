"""Where the records come from. Every source gives the schema of ``schemas.LOG``."""
