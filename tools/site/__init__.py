"""Builds the documentation site, with search: ``make site`` writes build/site."""
