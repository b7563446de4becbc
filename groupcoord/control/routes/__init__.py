"""The operations, one file for each thing that they are about."""
