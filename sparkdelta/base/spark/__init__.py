"""Access to Spark: sessions, classic or Connect, rows to the driver, job names, progress."""
