"""The shell: the only layer that lists and reads the log, starts Spark jobs and brings rows to the
driver.

What it brings goes through `driver.py`, is named and bounded. Rules live below, in `frames` and
`protocol`.
"""
