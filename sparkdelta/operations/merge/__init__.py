"""MERGE: rows of a source matched with rows of a table."""
