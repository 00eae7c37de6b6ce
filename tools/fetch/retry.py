"""Tries once more what a mirror or a registry did not give: mostly it fails for a moment.

For what does not hurt when it is done twice: a fetch, not a build.
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from ..errors import ToolError

PAUSES_S = (3.0, 15.0)  # before the second and the third attempt

T = TypeVar("T")


def retry(fetch: Callable[[], T]) -> T:
    """What fetch() gives; its failure is told each time, and the last one is raised."""
    for pause in PAUSES_S:
        try:
            return fetch()
        except ToolError as error:
            print(f"slotmq: {error}; once more in {pause:g} s", file=sys.stderr, flush=True)
            time.sleep(pause)
    return fetch()
