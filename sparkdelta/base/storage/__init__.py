"""Access to files without Spark: log stores, files of tables, files on executors."""
