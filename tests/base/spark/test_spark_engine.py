"""The engines of both kinds of sessions: the same methods, and few abilities by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import sparkdelta
from sparkdelta.base.spark.classic_engine import ClassicEngine
from sparkdelta.base.spark.connect_engine import ConnectEngine
from sparkdelta.base.spark.spark_engine import Ability

OF_THE_JVM = {"java", "jvm", "problem_of_callbacks"}
OF_LATE_SCANS = {
    "aggregates_of_scan",
    "late_rows",
    "mark_rows_of_scan",
    "reads_batches",
    "rows_when_planned",
}
"""The methods of `late_scans`, which Spark Connect does not have."""
PACKAGE = Path(sparkdelta.__file__).parent


def _public(engine: type) -> set[str]:
    return {name for name in dir(engine) if not name.startswith("_")}


def test_both_engines_have_the_same_methods() -> None:
    own = OF_THE_JVM | OF_LATE_SCANS
    assert _public(ClassicEngine) - own == _public(ConnectEngine)


def test_an_ability_is_asked_for_in_few_places() -> None:
    places = [
        f"{path.name}: {ability}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for ability in re.findall(r'[.]can[(]"([^"]+)"[)]', path.read_text(encoding="utf-8"))
    ]
    assert {place.partition(": ")[2] for place in places} == {*get_args(Ability)}
    assert len(places) <= 10, places
