"""Leaves whole sidecars unopened: their tags are at hand, and tell which may matter."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sparkdelta.engine.driver import read_rows
from sparkdelta.frames.checkpoint.sidecar_skipping import SidecarSkipping
from sparkdelta.frames.skipping.data_skipping import DataSkipping
from sparkdelta.protocol.actions import Sidecar
from sparkdelta.protocol.sidecar_tags import parse_sidecar_tags
from sparkdelta.table.log.log_reader import LogReader


def possible_sidecars(log: LogReader, skipping: DataSkipping) -> Sequence[Sidecar]:
    """The sidecars of a log that may describe a matching file. Costs no Spark job.

    Those of other writers are among them, as nothing is known of them.
    """
    facts = {one.path: parse_sidecar_tags(one.tags) for one in log.sidecars}
    tagged = {name: tags for name, tags in facts.items() if tags is not None and tags.num_adds}
    if not tagged:
        return log.sidecars
    table = pa.table(
        {
            "name": pa.array(list(tagged), pa.string()),
            "partition_values": pa.array([t.partition_values for t in tagged.values()]),
            "statistics": pa.array([t.statistics for t in tagged.values()]),
        }
    )
    kept = SidecarSkipping(skipping).keep(log.spark.createDataFrame(table))
    if kept is None:
        return log.sidecars
    rows = read_rows(
        kept, what="sidecars that may match", bound=len(tagged), version=log.segment.version
    )
    names = {row["name"] for row in rows}
    return [one for one in log.sidecars if one.path in names or facts[one.path] is None]
