"""The protocol's rules over tables of actions and rows: `DataFrame -> DataFrame`, lazy.

No session, no action, no storage. Nothing here depends on a setting of the session: formats, zones
and null rules are spelled out, and whatever cannot be parsed is an error or a null by name, never
by luck.
"""

import sys

from pyspark import cloudpickle

# Workers need not have the package: what runs there travels with the plan, with all it uses.
_package = sys.modules[__name__.partition(".")[0]]
cloudpickle.register_pickle_by_value(_package)  # type: ignore[no-untyped-call] # has no types
