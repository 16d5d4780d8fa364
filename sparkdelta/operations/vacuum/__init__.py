"""VACUUM: deletion of the files that no version within the retention period needs."""
