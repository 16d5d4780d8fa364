"""Deletion vectors: reading and writing bitmaps of deleted rows."""
