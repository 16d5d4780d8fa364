"""Access to Spark: sessions, reading rows on the driver, job descriptions and progress bars.

Independent of the contents of the log.
"""
