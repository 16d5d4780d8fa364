"""Streams that read a table: offsets, admission, and the files of each batch."""
