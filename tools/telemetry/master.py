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


def is_here(master: str | None) -> bool:
    """Whether executors are threads of this computer's driver."""
    return (master or "local").startswith("local")


def is_connect(master: str | None) -> bool:
    """Whether it is a server of Spark Connect."""
    return (master or "").startswith("sc://")
