"""Code that runs in Python workers on executors, over Arrow and Parquet, and its DataFrame API.

The package does not have to be installed on executors: its code is pickled by value.
"""

import sys

from pyspark import cloudpickle

_package = sys.modules[__name__.partition(".")[0]]
cloudpickle.register_pickle_by_value(_package)  # type: ignore[no-untyped-call] # has no types
