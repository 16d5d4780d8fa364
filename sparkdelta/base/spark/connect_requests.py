"""Blocks around the requests by which Spark Connect clients execute plans."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Around: TypeAlias = Callable[[Any, Any], AbstractContextManager[None]]
"""Returns the block around a request, given its client and the request, which it may change."""

_wrapped: set[tuple[type, Around]] = set()
_lock = threading.Lock()


def wrap_requests(clients: Any, around: Around) -> bool:
    """Wrap each request that clients of a class send from now on in a block; return False if that
    was done before.
    """
    with _lock:
        if (clients, around) in _wrapped:
            return False
        _wrapped.add((clients, around))
    execute, fetch = clients._execute, clients._execute_and_fetch_as_iterator

    @functools.wraps(execute)
    def wrapped_execute(client: Any, req: Any, *args: Any, **named: Any) -> Any:
        with around(client, req):
            return execute(client, req, *args, **named)

    @functools.wraps(fetch)
    def wrapped_fetch(client: Any, req: Any, *args: Any, **named: Any) -> Iterator[Any]:
        with around(client, req):
            yield from fetch(client, req, *args, **named)

    clients._execute, clients._execute_and_fetch_as_iterator = wrapped_execute, wrapped_fetch
    return True
