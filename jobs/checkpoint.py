"""Write a checkpoint of a Delta table: spark-submit jobs/checkpoint.py /path/to/table

Prints the result as one line of JSON to standard output, and progress to standard error. Exit
codes: 0 a checkpoint was written, or an equivalent one exists; 1 it could not be written; 2 invalid
arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "checkpoint", __doc__)

if __name__ == "__main__":
    sys.exit(main())
