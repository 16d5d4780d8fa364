"""Makes ``import delta`` work when it is imported, where delta-spark is not installed.

Programs import `DeltaTable` and others from there before they have a session; `enable` and
`configure` do the same.
"""

from sparkdelta.sql.delta_package import provide_delta_package
from sparkdelta.sql.sessions import configure

provide_delta_package(configure)
