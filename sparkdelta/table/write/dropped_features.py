"""The statement that drops a table feature.

References
----------
PROTOCOL.md#supported-features
"""

from __future__ import annotations

from dataclasses import replace

from sparkdelta.exceptions import (
    ConstraintsOfFeatureError,
    DropFeatureError,
    FeatureNotPresentError,
    TruncateHistoryError,
    UnknownFeatureDropError,
)
from sparkdelta.protocol.property_rules import CONSTRAINT
from sparkdelta.protocol.protocol_upgrades import without_feature
from sparkdelta.protocol.table_features import TableFeature, is_supported, known_feature
from sparkdelta.protocol.table_properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
)
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write.alteration import Alteration, alteration, with_schema
from sparkdelta.table.write.table_change import TableChange

_PROPERTIES = {
    TableFeature.CHECK_CONSTRAINTS: (),
    TableFeature.IN_COMMIT_TIMESTAMP: (
        ENABLE_IN_COMMIT_TIMESTAMPS,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    ),
}
"""The features that can be dropped, with the properties that go with them.

These are for writers alone, so old versions of the table can be read as before.
"""


def drop_feature(snapshot: Snapshot, name: str, *, truncates_history: bool = False) -> Alteration:
    """The table without a feature, and without what depends on it.

    Raises
    ------
    UnknownFeatureDropError, FeatureNotPresentError
        There is no such feature, or the table does not have it.
    DropFeatureError, TruncateHistoryError
        This engine cannot drop it, or not in this way.
    ConstraintsOfFeatureError
        The table still has constraints.

    References
    ----------
    PROTOCOL.md#supported-features
    """
    table, feature = snapshot.configuration, known_feature(name)
    if feature is None:
        raise UnknownFeatureDropError(feature=name)
    if not is_supported(table.protocol, feature):
        raise FeatureNotPresentError(feature=name, path=snapshot.path)
    if feature not in _PROPERTIES:
        droppable = tuple(each.value for each in _PROPERTIES)
        raise DropFeatureError(feature=name, droppable=droppable)
    if truncates_history:
        raise TruncateHistoryError(feature=name)
    constraints = tuple(
        key.removeprefix(CONSTRAINT) for key in table.properties if key.startswith(CONSTRAINT)
    )
    if feature is TableFeature.CHECK_CONSTRAINTS and constraints:
        raise ConstraintsOfFeatureError(constraints=constraints)
    gone = _PROPERTIES[feature]
    properties = {key: value for key, value in table.properties.items() if key not in gone}
    unused = with_schema(table, table.schema, properties=properties)
    after = replace(unused, protocol=without_feature(unused.protocol, feature))
    shown = {"featureName": name, "truncateHistory": False}
    found = alteration(TableChange(table, after), "DROP FEATURE", shown)
    return replace(found, dropped_features=frozenset((feature.value,)))
