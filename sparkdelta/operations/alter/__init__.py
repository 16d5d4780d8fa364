"""ALTER TABLE, and the removal of table features."""
