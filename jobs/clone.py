"""Clone a Delta table: spark-submit jobs/clone.py /path/to/table /path/to/clone --deep

Prints one line of JSON to standard output: the versions of both tables, and the files and bytes
that were copied. Exit codes: 0 success; 1 the table could not be cloned; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "clone", __doc__)

if __name__ == "__main__":
    sys.exit(main())
