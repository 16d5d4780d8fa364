"""One version of a table, and staging directories beside it."""
