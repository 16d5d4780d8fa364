"""The methods of PySpark that `enable` replaces, such as ``spark.read.format("delta")``."""
