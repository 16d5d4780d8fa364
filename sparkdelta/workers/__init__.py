"""Python that runs on executors, over Arrow and Parquet, and the DataFrame functions that ship it.

Workers need not have the package: what runs there travels with the plan, with all it uses.
"""

import sys

from pyspark import cloudpickle

_package = sys.modules[__name__.partition(".")[0]]
cloudpickle.register_pickle_by_value(_package)  # type: ignore[no-untyped-call] # has no types
