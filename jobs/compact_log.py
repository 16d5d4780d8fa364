"""Write a log compaction file of a Delta table: spark-submit jobs/compact_log.py /path/to/table

Prints the result as one line of JSON to standard output. Exit codes: 0 the file was written or
exists, or there is nothing to compact; 1 it could not be written; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "compact-log", __doc__)

if __name__ == "__main__":
    sys.exit(main())
