"""Convert a directory of Parquet files to a Delta table: spark-submit jobs/convert.py /data/events

Prints one line of JSON to standard output: the version, and the number and size of the files.
Exit codes: 0 success; 1 the directory could not be converted; 2 invalid arguments.
"""

import sys
from functools import partial

import job

main = partial(job.run, "convert", __doc__)

if __name__ == "__main__":
    sys.exit(main())
