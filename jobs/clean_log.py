"""Delete expired log files of a Delta table: spark-submit jobs/clean_log.py /path/to/table

Prints one line of JSON to standard output, with the names of the deleted files, or the reason why
there are none. Exit codes: 0 success; 1 the log could not be cleaned; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "clean-log", __doc__)

if __name__ == "__main__":
    sys.exit(main())
