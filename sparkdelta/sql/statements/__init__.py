"""Delta's statements carried out, and queries in which DataFrames stand for tables."""
