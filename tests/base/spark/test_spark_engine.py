"""The engines of both kinds of sessions: the same methods, and abilities by name."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from sparkdelta.base.spark.classic_engine import ClassicEngine
from sparkdelta.base.spark.connect_engine import ConnectEngine
from sparkdelta.base.spark.spark_engine import Ability

OF_THE_JVM = {"java", "jvm", "problem_of_callbacks"}
REQUIRED = {
    "call back": ("in_listing_session", "late_rows", "listing_session", "reads_batches"),
    "move frames": ("in_user_session",),
}


def _public(engine: type) -> set[str]:
    return {name for name in dir(engine) if not name.startswith("_")}


def test_both_engines_have_the_same_methods() -> None:
    assert _public(ClassicEngine) - OF_THE_JVM == _public(ConnectEngine) - {"abilities"}


@pytest.mark.parametrize("ability", REQUIRED)
def test_a_method_is_refused_without_its_ability(ability: Any) -> None:
    session: Any = None
    engine = ConnectEngine(session)
    assert not engine.can(ability)
    for name in REQUIRED[ability]:
        with pytest.raises(NotImplementedError, match=f"cannot {ability}"):
            getattr(engine, name)()


def test_each_ability_is_of_one_kind_of_session() -> None:
    session: Any = None
    classic, connect = ClassicEngine(session), ConnectEngine(session)
    abilities = set(get_args(Ability)) - {"call back"}  # which depends on the Spark
    assert {one for one in abilities if connect.can(one)} == {
        one for one in abilities if not classic.can(one)
    }
