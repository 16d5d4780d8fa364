"""Outcomes as plain values and as tables in notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from sparkdelta.base.protocol.results import Result, html_rows


@dataclass(frozen=True, slots=True)
class Outcome(Result):
    path: str
    files: tuple[str, ...] = ()
    version: int | None = None


def test_a_table_of_names_and_values() -> None:
    outcome = Outcome("a<b>&c", tuple(map(str, range(1000))))
    assert outcome.as_dict()["path"] == "a<b>&c"
    rows = [[cell.text for cell in row] for row in ET.fromstring(outcome._repr_html_())]
    assert [row[0] for row in rows] == ["path", "files", "version"]
    assert (rows[0][1], rows[2][1]) == ("a<b>&c", None)
    assert len(rows[1][1] or "") < 400


def test_rows() -> None:
    drawn = html_rows([{"a<b>": 1, "map": {"k": 2, "l": None}}, {"a<b>": None, "map": {}}])
    cells = [[cell.text for cell in row] for row in ET.fromstring(drawn)]
    assert cells == [["a<b>", "map"], ["1", "k=2, l=None"], [None, None]]
    assert len(ET.fromstring(html_rows([]))) == 0
