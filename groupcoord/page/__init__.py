"""HTML pages that show a trace, each one self-contained file; ``make page`` builds their front end from ``web/``."""
