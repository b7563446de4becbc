"""The derived tables. Their functions take and return DataFrames; each selects the columns that it reads and returns."""
