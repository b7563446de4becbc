"""Attacks on a server and on its data directory. ``make break`` runs them all."""
