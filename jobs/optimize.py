"""Compact, order, cluster or purge files: spark-submit jobs/optimize.py /path/to/table

Prints one line of JSON to standard output: the new versions, and the files and bytes before and
after. Exit codes: 0 success; 1 the table could not be optimized; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "optimize", __doc__)

if __name__ == "__main__":
    sys.exit(main())
