"""The foundations of the rooms above: Spark, storage, Parquet, conditions, schemas, the protocol."""
