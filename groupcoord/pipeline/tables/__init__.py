"""The tables: each module has functions from DataFrame to DataFrame, which open and close with a select."""
