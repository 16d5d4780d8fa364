"""Delete the files that a Delta table no longer needs: spark-submit jobs/vacuum.py /path/to/table

Prints one line of JSON to standard output: the files and bytes that were deleted, and those that
were kept by reason. Exit codes: 0 success; 1 the table could not be vacuumed; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "vacuum", __doc__)

if __name__ == "__main__":
    sys.exit(main())
