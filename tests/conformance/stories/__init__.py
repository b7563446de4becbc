"""The stories, one module per topic."""
