"""Check that a Delta table is consistent with its log: spark-submit jobs/verify.py /path/to/table

Prints a report to standard error, and the same as one line of JSON to standard output. Exit codes:
0 the table is clean; 1 there are findings, or the table could not be read; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "verify", __doc__)

if __name__ == "__main__":
    sys.exit(main())
