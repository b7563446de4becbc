"""The documentation as a site with search: ``make site`` writes build/site."""
