"""Draws what the suite `growth` has measured: seconds of each operation by the number of files.

python -m tests.benchmarks.growth_chart MEASURED.json CHART.svg
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_NAME = re.compile(r"(?P<operation>.+), (?P<files>[\d,]+) files, ")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 420, 60, 20, 230, 50
_LEAST_GAP = 16  # between the names of two lines
_COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#b8860b", "#56b4e9"),
    *("#117733", "#882255", "#332288", "#aa4499", "#661100", "#44aa99", "#6699cc"),
)

Points = dict[int, float]
"""Seconds by the number of files."""


def points_of(comparisons: Iterable[Mapping[str, Any]]) -> dict[str, Points]:
    """The points of each operation, from the comparisons of a benchmark's JSON file."""
    found: dict[str, Points] = {}
    for one in comparisons:
        match = _NAME.match(one["name"])
        if one["suite"] != "growth" or match is None:
            continue
        files = int(match["files"].replace(",", ""))
        points = found.setdefault(match["operation"], {})
        points[files // 10] = one["floor_seconds"]["median"]
        points[files] = one["seconds"]["median"]
    return found


def chart(lines: Mapping[str, Points]) -> str:
    """An SVG of lines on two logarithmic axes, each with its name at its end."""
    counts = sorted({count for points in lines.values() for count in points})
    times = [seconds for points in lines.values() for seconds in points.values()]
    least, most = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(count: int) -> float:
        start, end = math.log10(counts[0]), math.log10(counts[-1])
        return _LEFT + (math.log10(count) - start) / (end - start) * (_WIDTH - _LEFT - _RIGHT)

    def y(seconds: float) -> float:
        share = (math.log10(seconds) - least) / (most - least)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for exponent in range(least, most + 1):
        at = y(10**exponent)
        parts.append(_line(_LEFT, at, _WIDTH - _RIGHT, at))
        parts.append(_text(_LEFT - 8, at + 4, f"{10**exponent:,g} s", anchor="end"))
    for count in counts:
        parts.append(_line(x(count), _TOP, x(count), _HEIGHT - _BOTTOM))
        parts.append(_text(x(count), _HEIGHT - _BOTTOM + 20, f"{_short(count)} files"))
    lowest = float(_HEIGHT)
    by_end = sorted(lines.items(), key=lambda line: line[1][max(line[1])])
    for (name, points), color in zip(by_end, cycle(_COLORS), strict=False):
        places = [(x(count), y(points[count])) for count in sorted(points)]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lowest = min(places[-1][1] + 4, lowest - _LEAST_GAP)
        parts.append(_text(_WIDTH - _RIGHT + 8, lowest, name, anchor="start", color=color))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="13">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _short(count: int) -> str:
    thousands = (math.floor(math.log10(count)) // 3) if count else 0
    return f"{count // 1000**thousands:,}{('', 'k', 'M', 'B')[thousands]}"


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle", color: str = "#333") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"'
    return f"<text {place}>{escape(text)}</text>"


if __name__ == "__main__":
    _source, _target = sys.argv[1:]
    _report = json.loads(Path(_source).read_text(encoding="utf-8"))
    Path(_target).write_text(chart(points_of(_report["comparisons"])), encoding="utf-8")
