"""Spark itself: sessions, the way of rows to the driver, names of jobs and progress bars.

Nothing here knows what a row of the log means.
"""
