"""Figures, always beside a peer measured in the same run: ``python -m bench`` prints tables, nothing is asserted."""
