"""Parquet files as Arrow reads them: schemas, columns, values, row groups."""
