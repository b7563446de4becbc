"""Pages that show what a cluster did: one self-contained HTML file from a trace, built from ``web/`` by ``make page``."""
