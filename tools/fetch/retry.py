"""Retries a download: most failures of a mirror or a package registry are temporary."""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from ..errors import ToolError

PAUSES_S = (3.0, 15.0)  # seconds before the second and the third attempt

T = TypeVar("T")


def retry(fetch: Callable[[], T]) -> T:
    """Call fetch() up to three times; -> its result.

    It prints each ToolError but the last, which it raises. `fetch` must be safe to repeat."""
    for pause in PAUSES_S:
        try:
            return fetch()
        except ToolError as error:
            print(f"slotmq: {error}; trying again in {pause:g} s", file=sys.stderr, flush=True)
            time.sleep(pause)
    return fetch()
