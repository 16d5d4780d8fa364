"""Sessions that try to change results, as `tests/frames` has them."""

from tests.frames.conftest import hostile

__all__ = ["hostile"]
