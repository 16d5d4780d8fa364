"""Rules over rows of a table: from data files to logical rows, and from rows to data files."""
