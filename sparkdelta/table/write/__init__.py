"""Writing rows: the table as a write leaves it, conformed rows, data files and their actions."""
