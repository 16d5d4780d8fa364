"""SQL on Delta tables, and PySpark's methods for them, on top of the public functions."""
