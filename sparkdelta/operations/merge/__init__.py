"""MERGE: rows of a source matched with those of a table."""
