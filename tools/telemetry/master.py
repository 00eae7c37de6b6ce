"""The address of a Spark master, checked before Spark starts, which takes seconds."""

from __future__ import annotations

import re

from ..errors import ToolError

_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|k8s|sc)://.+|yarn")


def check(master: str) -> None:
    """ToolError: it is none."""
    if not _MASTER.fullmatch(master):
        raise ToolError(
            f"{master} is not a Spark master: local[CORES], spark://HOST:PORT, yarn, k8s://..., or"
            " sc://HOST:PORT of Spark Connect"
        )
