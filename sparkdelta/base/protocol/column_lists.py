"""Lists of columns in table properties: ``a, s.b, `x.y`, c``, with backticks to quote names.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#field-path
"""

from __future__ import annotations

import re

from sparkdelta.exceptions import InvalidArgumentError

STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,\s](?:[^`.,]*[^`.,\s])?))\s*([.,]|$)")


def column_list(name: str, text: str) -> list[tuple[str, ...]]:
    """Parse a list of columns, the value of the property `name`, into paths of names.

    Examples
    --------
    >>> column_list("p", "a, s.b c, `x.y`.`z``,`")
    [('a',), ('s', 'b c'), ('x.y', 'z`,')]
    """
    columns: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    position = 0
    while part := _PART.match(text, position):
        escaped, plain, end = part.groups()
        path = (*path, plain if escaped is None else escaped.replace("``", "`"))
        if end != ".":
            columns.append(path)
            path = ()
        position = part.end()
        if not end:
            return columns
    raise InvalidArgumentError(argument=name, problem=f"{text!r} is not a list")
