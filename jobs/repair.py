"""Mend a Delta table: spark-submit jobs/repair.py /path/to/table

Prints one line of JSON to standard output: what was mended and what is left. Exit codes: 0 nothing
is left; 1 problems are left, or the table could not be read; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "repair", __doc__)

if __name__ == "__main__":
    sys.exit(main())
