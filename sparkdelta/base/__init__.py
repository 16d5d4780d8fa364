"""The foundations of all rooms above: Spark, files, conditions, schemas, the protocol."""
