"""The changes between versions, and the history of a table."""
