"""Blocks around the requests by which Spark Connect clients execute plans."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Around: TypeAlias = Callable[[Any, Any], AbstractContextManager[None]]
"""Returns the block around a request, given its client and the request, which it may change."""

_entered: set[tuple[type, Around]] = set()
_lock = threading.Lock()


def enter_around_requests(clients: Any, around: Around) -> bool:
    """Enter a block around each request that clients of a class send from now on; return False if
    they do so already.
    """
    with _lock:
        if (clients, around) in _entered:
            return False
        _entered.add((clients, around))
    execute, fetch = clients._execute, clients._execute_and_fetch_as_iterator

    @functools.wraps(execute)
    def execute_inside(client: Any, req: Any, *args: Any, **named: Any) -> Any:
        with around(client, req):
            return execute(client, req, *args, **named)

    @functools.wraps(fetch)
    def fetch_inside(client: Any, req: Any, *args: Any, **named: Any) -> Iterator[Any]:
        with around(client, req):
            yield from fetch(client, req, *args, **named)

    clients._execute, clients._execute_and_fetch_as_iterator = execute_inside, fetch_inside
    return True
