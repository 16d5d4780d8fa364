"""Describe a Delta table: spark-submit jobs/describe.py /path/to/table

Prints the one row of `DESCRIBE DETAIL`, and with --history the latest commits, as JSON on standard
output. Exit codes: 0 success; 1 the table could not be read; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "describe", __doc__)

if __name__ == "__main__":
    sys.exit(main())
